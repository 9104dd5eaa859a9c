// What the faces of FMI 2 and FMI 3 do alike: an instance, its log, and calls that must throw nothing.
// In:  calls of an importer
// Out: a status, and words to its logger
#pragma once

#include <exception>
#include <memory>
#include <string>

#include "export/coupled_system.hpp"
#include "fmu/fmi.hpp"

#define HOCKET_EXPORTED extern "C" __attribute__((visibility("default")))

namespace hocket::face {

// Says something to the importer.
class Speaker {
  public:
    virtual ~Speaker() = default;
    virtual void say(fmi::Status status, const char* category, const std::string& text) = 0;
};

struct FaceInstance {
    std::unique_ptr<CoupledSystem> system;
    std::unique_ptr<Speaker> speaker;
    bool logging = false;
};

inline fmi::Status complain(FaceInstance& instance, const std::string& what) {
    instance.speaker->say(fmi::error, "logStatusError", what);
    return fmi::error;
}

// Calls `action(instance)`, which returns false with a reason in `problem()`; nothing is thrown on.
template <class Action> fmi::Status attempt(void* handle, const char* function, const Action& action) {
    if (!handle) return fmi::error;
    auto& instance = *static_cast<FaceInstance*>(handle);
    try {
        if (action(instance)) return fmi::ok;
        return complain(instance, std::string(function) + ": " + instance.system->problem());
    } catch (const std::exception& error) {
        return complain(instance, std::string(function) + ": " + error.what());
    } catch (...) {
        return complain(instance, std::string(function) + ": an unknown error");
    }
}

// States of the whole tree, alike in both versions.
fmi::Status get_state(void* handle, fmi::State* state);
fmi::Status set_state(void* handle, fmi::State state);
fmi::Status free_state(fmi::State* state);
fmi::Status state_size(void* handle, fmi::State state, std::size_t* size);
fmi::Status write_state(void* handle, fmi::State state, char* bytes, std::size_t size);
fmi::Status read_state(void* handle, const char* bytes, std::size_t size, fmi::State* state);

// The folder that a URI of resources means.
std::string folder_of(const char* uri);

// A new instance, or null where the speaker was told why there is none.
FaceInstance* make_instance(const char* name, const char* token, const std::string& resources,
                            std::unique_ptr<Speaker> speaker, bool logging);

}  // namespace hocket::face
