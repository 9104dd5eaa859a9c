// The C interfaces of FMI 1.0, 2.0 and 3.0, as far as hocket calls them.
// In:  the standards (modelica.org)
// Out: types of functions that a library may export
#pragma once

#include <cstddef>
#include <cstdint>

namespace hocket::fmi {

using Instance = void*;
using State = void*;
using Text = const char*;
using Reference = std::uint32_t;
using Binary = const std::uint8_t*;

// Alike in all three versions; the first two have `pending` besides.
enum Status : int { ok, warning, discard, error, fatal, pending };

// Set and get of one type: FMI 1 and 2 count references, FMI 3 counts values too.
template <class T> using Set = Status(Instance, const Reference*, std::size_t, const T*);
template <class T> using Get = Status(Instance, const Reference*, std::size_t, T*);
template <class T> using Set3 = Status(Instance, const Reference*, std::size_t, const T*, std::size_t);
template <class T> using Get3 = Status(Instance, const Reference*, std::size_t, T*, std::size_t);
using SetBinary = Status(Instance, const Reference*, std::size_t, const std::size_t*, const Binary*,
                         std::size_t);
using GetBinary = Status(Instance, const Reference*, std::size_t, std::size_t*, Binary*, std::size_t);

using Simple = Status(Instance);
using Free = void(Instance);
using SetDerivatives = Status(Instance, const Reference*, std::size_t, const int*, const double*);
using GetDerivatives = Status(Instance, const Reference*, std::size_t, const int*, double*);
using GetDerivatives3 = Status(Instance, const Reference*, std::size_t, const std::int32_t*, double*,
                               std::size_t);
using GetState = Status(Instance, State*);
using SetState = Status(Instance, State);
using StateSize = Status(Instance, State, std::size_t*);
using SerialiseState = Status(Instance, State, char*, std::size_t);
using DeserialiseState = Status(Instance, const char*, std::size_t, State*);
using Directional2 = Status(Instance, const Reference*, std::size_t, const Reference*, std::size_t,
                            const double*, double*);
using Directional3 = Status(Instance, const Reference*, std::size_t, const Reference*, std::size_t,
                            const double*, std::size_t, double*, std::size_t);
using SetTime = Status(Instance, double);
using SetNumbers = Status(Instance, const double*, std::size_t);
using GetNumbers = Status(Instance, double*, std::size_t);
using GetCount = Status(Instance, std::size_t*);

enum StatusKind : int { step_status, pending_status, last_successful_time, terminated };

// FMI 1.0
using Boolean1 = char;
using Logger1 = void (*)(Instance, Text name, Status, Text category, Text message, ...);
struct Callbacks1 {
    Logger1 logger;
    void* (*allocate)(std::size_t, std::size_t);
    void (*release)(void*);
    void (*step_finished)(Instance, Status);
};
struct ExchangeCallbacks1 {
    Logger1 logger;
    void* (*allocate)(std::size_t, std::size_t);
    void (*release)(void*);
};
using Instantiate1 = Instance(Text name, Text guid, Text location, Text mime, double timeout,
                              Boolean1 visible, Boolean1 interactive, Callbacks1, Boolean1 logging);
using InstantiateExchange1 = Instance(Text name, Text guid, ExchangeCallbacks1, Boolean1 logging);
struct EventInfo1 {
    Boolean1 converged, references_changed, states_changed, terminates, next_defined;
    double next;
};
using InitialiseExchange1 = Status(Instance, Boolean1 tolerant, double tolerance, EventInfo1*);
using EventUpdate1 = Status(Instance, Boolean1 intermediate_results, EventInfo1*);
using CompletedStep1 = Status(Instance, Boolean1* event);
using Initialise1 = Status(Instance, double start, Boolean1 stops, double stop);
using Step1 = Status(Instance, double t, double h, Boolean1 fresh);
using GetRealStatus = Status(Instance, StatusKind, double*);

// FMI 2.0
using Boolean2 = int;
using Logger2 = void (*)(void* environment, Text name, Status, Text category, Text message, ...);
struct Callbacks2 {
    Logger2 logger;
    void* (*allocate)(std::size_t, std::size_t);
    void (*release)(void*);
    void (*step_finished)(void*, Status);
    void* environment;
};
enum Kind2 : int { model_exchange2, co_simulation2 };
using Instantiate2 = Instance(Text name, Kind2, Text guid, Text resources, const Callbacks2*,
                              Boolean2 visible, Boolean2 logging);
using Setup2 = Status(Instance, Boolean2 tolerant, double tolerance, double start, Boolean2 stops,
                      double stop);
using Step2 = Status(Instance, double t, double h, Boolean2 no_return);
using GetBooleanStatus2 = Status(Instance, StatusKind, Boolean2*);
struct EventInfo2 {
    Boolean2 again, terminates, nominals_changed, states_changed, next_defined;
    double next;
};
using NewDiscreteStates2 = Status(Instance, EventInfo2*);
using CompletedStep2 = Status(Instance, Boolean2 no_return, Boolean2* enter_events, Boolean2* terminates);

// FMI 3.0
using Boolean3 = bool;
using Logger3 = void (*)(void* environment, Status, Text category, Text message);
using Update3 = void (*)(void* environment, double t, Boolean3 may_set, Boolean3 may_get, Boolean3 finished,
                         Boolean3 can_stop, Boolean3* stop, double* stop_at);
using InstantiateCs3 = Instance(Text name, Text token, Text resources, Boolean3 visible, Boolean3 logging,
                                Boolean3 events, Boolean3 early, const Reference*, std::size_t,
                                void* environment, Logger3, Update3);
using InstantiateMe3 = Instance(Text name, Text token, Text resources, Boolean3 visible, Boolean3 logging,
                                void* environment, Logger3);
using Enter3 = Status(Instance, Boolean3 tolerant, double tolerance, double start, Boolean3 stops,
                      double stop);
using Step3 = Status(Instance, double t, double h, Boolean3 no_return, Boolean3* events, Boolean3* terminates,
                     Boolean3* early, double* reached);
using UpdateDiscrete3 = Status(Instance, Boolean3* again, Boolean3* terminates, Boolean3* nominals_changed,
                               Boolean3* states_changed, Boolean3* next_defined, double* next);
using SetClock3 = Status(Instance, const Reference*, std::size_t, const Boolean3*);
using GetClock3 = Status(Instance, const Reference*, std::size_t, Boolean3*);
enum Qualifier3 : int { not_yet_known, unchanged, changed };
using GetInterval3 = Status(Instance, const Reference*, std::size_t, double*, Qualifier3*);
using GetIntervalFraction3 = Status(Instance, const Reference*, std::size_t, std::uint64_t* counters,
                                    std::uint64_t* resolutions, Qualifier3*);
using GetShift3 = Status(Instance, const Reference*, std::size_t, double*);
using GetShiftFraction3 = Status(Instance, const Reference*, std::size_t, std::uint64_t* counters,
                                 std::uint64_t* resolutions);
using InstantiateSe3 = Instance(Text name, Text token, Text resources, Boolean3 visible, Boolean3 logging,
                                void* environment, Logger3, void (*clock_update)(void*),
                                void (*lock_preemption)(), void (*unlock_preemption)());
using ActivatePartition3 = Status(Instance, Reference clock, double t);
using CompletedStep3 = Status(Instance, Boolean3 no_return, Boolean3* enter_events, Boolean3* terminates);

}  // namespace hocket::fmi
