#include "fmu/library.hpp"

#include <dlfcn.h>

#include <map>
#include <mutex>

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

Library::Library(std::string path, std::string prefix) : path_(std::move(path)), prefix_(std::move(prefix)) {
    handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) {
        const char* why = dlerror();
        throw std::runtime_error(why ? why : "the library cannot be loaded");
    }
}

Library::~Library() { dlclose(handle_); }

void* Library::symbol(const char* name) const { return dlsym(handle_, (prefix_ + name).c_str()); }

}  // namespace hocket
