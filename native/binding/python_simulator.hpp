// Simulators written in Python: called on the thread that holds the interpreter lock.
// In:  a live Python simulator
// Out: a native one that calls it with views of the engine's memory: no copies, no conversions
#pragma once

#include <nanobind/nanobind.h>

#include <cmath>

#include "engine/simulator.hpp"

namespace hocket {

// A state, and how far the rows of the micro steps went.
struct State {
    nanobind::object state, mark;
};

class PythonSimulator final : public Simulator {
  public:
    PythonSimulator(nanobind::object simulator, int rows, int inputs, int outputs, const Clock& clock,
                    nanobind::object micro, nanobind::object event_tick, bool observes, bool places);
    bool step(const Span& span, const double* u) override;
    bool output(std::int64_t tick, const double* u, double* y) override;
    bool slope(std::int64_t tick, const double* u, double* dy) override;
    bool takes_part() const override { return due_.is_valid(); }
    bool due(std::int64_t& tick) override;
    bool react(std::int64_t tick, int n, const double* u, const std::uint8_t* present,
               std::uint8_t* shown) override;
    bool commit(bool& again) override;
    bool space_events(std::int64_t tick, double interval) override;
    bool save(Snapshot& to) override;
    bool restore(Snapshot& from) override;
    void settle_rows(const Snapshot* restorable, bool inside) override;
    bool needs_python() const override { return true; }
    Failure failure() const override { return failure_; }

    // The error a call has raised, taken from the interpreter.
    nanobind::object take_error();

  private:
    PyObject* view(const double* u);
    bool evaluate(PyObject* method, Call call, std::int64_t tick, const double* u, double* y);
    bool keep_exception(Call call, std::int64_t tick);

    nanobind::object step_, output_, slope_, save_, restore_;
    nanobind::object due_, react_, commit_;  // of those that take part in instants
    nanobind::object space_events_;          // of those of them that can
    nanobind::object event_tick_;            // the tick of a fraction
    nanobind::object last_due_;              // what it announced last,
    std::int64_t last_tick_ = never_due;     // and the tick of that
    double last_seconds_ = std::nan("");     // the same of a float
    std::int64_t last_place_ = never_due;
    std::int64_t at_ = 0;     // where it was asked last
    nanobind::object micro_;  // the rows of its micro steps, or None
    nanobind::object error_;
    int rows_, inputs_, outputs_;
    const Clock* clock_;
    double slack_;  // how far from the end of a step it may stop, as a part of the step
    bool places_;   // between two places for events there is none: it stands at the second one
    Failure failure_;
    struct View {
        const double* at = nullptr;
        nanobind::object array;
    };
    View views_[2];  // the polynomials themselves, and the same seen from the end of the step
};

// Copies numbers out of whatever a simulator returned; false with a Python error set.
bool take_numbers(PyObject* result, double* y, int count);

}  // namespace hocket
