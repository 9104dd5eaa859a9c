// The binary of an FMU, loaded once for all its instances.
// In:  the path of a shared library
// Out: its functions by name; on a platform without dlopen an error
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

namespace hocket {

// A function, or none, and its name for those who must say so.
template <class F> struct Function {
    F* call = nullptr;
    const char* name = "";
    explicit operator bool() const { return call != nullptr; }
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

    void (*calls[3])() =
        {};  // set, doStep and get of reals, once an instance has found them: all instances share these

  private:
    Library(std::string path, std::string prefix);
    void* symbol(const char* name) const;

    std::string path_;
    std::string prefix_;  // FMI 1: modelIdentifier_
    void* handle_ = nullptr;
};

}  // namespace hocket
