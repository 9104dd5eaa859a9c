#include "fmu/library.hpp"

#if __has_include(<dlfcn.h>)
#define HOCKET_DLOPEN 1
#include <dlfcn.h>
#endif

#include <map>
#include <mutex>

#include "engine/arithmetic_guard.hpp"

namespace hocket {

std::shared_ptr<Library> Library::load(const std::string& path, const std::string& prefix) {
    static std::mutex lock;
    static std::map<std::string, std::weak_ptr<Library>> loaded;
    std::lock_guard guard(lock);
    auto& known = loaded[path];
    if (auto library = known.lock()) return library;
    std::shared_ptr<Library> library(new Library(path, prefix));
    known = library;
    return library;
}

#ifdef HOCKET_DLOPEN

Library::Library(std::string path, std::string prefix) : path_(std::move(path)), prefix_(std::move(prefix)) {
    const ArithmeticGuard guard;  // what -ffast-math links in acts on loading
    handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) {
        const char* why = dlerror();
        throw std::runtime_error(why ? why : "the library cannot be loaded");
    }
}

Library::~Library() {
    const char* name = path_.c_str() + path_.rfind('/') + 1;
    const Callee leaving(name, path_.c_str());
    ForeignCallScope scope("dlclose", name);
    dlclose(handle_);
}

void* Library::symbol(const char* name) const { return dlsym(handle_, (prefix_ + name).c_str()); }

#else

Library::Library(std::string, std::string) {
    throw std::runtime_error("hocket loads no FMUs on this platform: it has no dlopen");
}

Library::~Library() = default;

void* Library::symbol(const char*) const { return nullptr; }

#endif

}  // namespace hocket
