// The binary of an FMU, loaded once for all its instances.
// In:  the path of a shared library
// Out: its functions by name; on a platform without dlopen an error
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "engine/crash_guard.hpp"

namespace hocket {

// A function, or none, and its name for those who must say so, also when it ends the process.
template <class F> struct Function {
    F* call = nullptr;
    const char* name = "";
    explicit operator bool() const { return call != nullptr; }
    template <class Handle, class... Arguments> auto operator()(Handle handle, Arguments... arguments) const {
        ForeignCallScope scope(name, handle);
        return call(handle, arguments...);
    }
};

// A library without a function that FMI demands.
struct MissingFunction : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Library {
  public:
    // Loads the library, or throws with what the loader says; equal paths share one.
    static std::shared_ptr<Library> load(const std::string& path, const std::string& prefix);
    ~Library();
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    template <class F> void find(Function<F>& function, const char* name) const {
        function = {reinterpret_cast<F*>(symbol(name)), name};
    }
    // A function that no FMU can do without.
    template <class F> void need(Function<F>& function, const char* name) const {
        find(function, name);
        if (!function) throw MissingFunction(path_ + " has no function " + prefix_ + name);
    }

    // Set, doStep and get of reals as co-simulation has them: found by its first instance, shared by all.
    // They are written once, so that instances of other threads and other interfaces may read them meanwhile.
    using Calls = std::array<void (*)(), 3>;
    void share_calls(const Calls& found) {
        std::call_once(shared_, [&] { calls_ = found; });
    }
    const Calls& calls() const { return calls_; }

    // Instances are made, initialised and freed one at a time: many binaries are not made for more.
    std::recursive_mutex& turn() { return turn_; }

  private:
    std::recursive_mutex turn_;
    Calls calls_{};
    std::once_flag shared_;

    Library(std::string path, std::string prefix);
    void* symbol(const char* name) const;

    std::string path_;
    std::string prefix_;  // FMI 1: modelIdentifier_
    void* handle_ = nullptr;
};

}  // namespace hocket
