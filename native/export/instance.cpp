#include "export/instance.hpp"

#include <cctype>
#include <cstring>

namespace hocket::face {

namespace {

int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const int lower = std::tolower(static_cast<unsigned char>(c));
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

fmi::Status get_state(void* handle, fmi::State* state) {
    return attempt(handle, "getting the state", [&](FaceInstance& instance) {
        auto saved = instance.system->save();
        if (!saved) return false;
        delete static_cast<CoupledSystem::State*>(*state);  // an earlier one is used again
        *state = saved.release();
        return true;
    });
}

fmi::Status set_state(void* handle, fmi::State state) {
    return attempt(handle, "setting the state", [&](FaceInstance& instance) {
        if (!state) return instance.system->refuse("there is no state");
        return instance.system->restore(*static_cast<CoupledSystem::State*>(state));
    });
}

fmi::Status free_state(fmi::State* state) {
    if (!state) return fmi::ok;
    delete static_cast<CoupledSystem::State*>(*state);
    *state = nullptr;
    return fmi::ok;
}

fmi::Status state_size(void* handle, fmi::State state, std::size_t* size) {
    return attempt(handle, "serialising the state", [&](FaceInstance& instance) {
        if (!state) return instance.system->refuse("there is no state");
        auto& saved = *static_cast<CoupledSystem::State*>(state);
        if (!instance.system->serialise(saved)) return false;
        *size = saved.bytes.size();
        return true;
    });
}

fmi::Status write_state(void* handle, fmi::State state, char* bytes, std::size_t size) {
    return attempt(handle, "serialising the state", [&](FaceInstance& instance) {
        if (!state) return instance.system->refuse("there is no state");
        auto& saved = *static_cast<CoupledSystem::State*>(state);
        if (!instance.system->serialise(saved)) return false;
        if (size < saved.bytes.size())
            return instance.system->refuse(std::to_string(size) + " bytes are too few for " +
                                           std::to_string(saved.bytes.size()));
        std::memcpy(bytes, saved.bytes.data(), saved.bytes.size());
        return true;
    });
}

fmi::Status read_state(void* handle, const char* bytes, std::size_t size, fmi::State* state) {
    return attempt(handle, "reading a state", [&](FaceInstance& instance) {
        auto read = instance.system->deserialise(std::string(bytes, size));
        if (!read) return false;
        delete static_cast<CoupledSystem::State*>(*state);
        *state = read.release();
        return true;
    });
}

std::string folder_of(const char* uri) {
    std::string text = uri ? uri : "";
    if (text.rfind("file:", 0) != 0) return text;
    text.erase(0, 5);
    if (text.rfind("//", 0) == 0) {
        text.erase(0, 2);
        if (const std::size_t root = text.find('/'); root != std::string::npos) text.erase(0, root);
    }
    std::string path;
    for (std::size_t k = 0; k < text.size(); ++k) {
        if (text[k] == '%' && k + 2 < text.size() && digit(text[k + 1]) >= 0 && digit(text[k + 2]) >= 0) {
            path += static_cast<char>(16 * digit(text[k + 1]) + digit(text[k + 2]));
            k += 2;
        } else {
            path += text[k];
        }
    }
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return path;
}

FaceInstance* make_instance(const char* name, const char* token, const std::string& resources,
                            std::unique_ptr<Speaker> speaker, bool logging) {
    auto instance = std::make_unique<FaceInstance>();
    instance->speaker = std::move(speaker);
    instance->logging = logging;
    try {
        instance->system = std::make_unique<CoupledSystem>(name ? name : "", resources);
        if (!token || instance->system->token() != token) {
            complain(*instance, "the token is not that of this FMU: its files are of different exports");
            return nullptr;
        }
        return instance.release();
    } catch (const std::exception& error) {
        complain(*instance, std::string("it cannot be instantiated: ") + error.what());
    } catch (...) {
        complain(*instance, "it cannot be instantiated");
    }
    return nullptr;
}

}  // namespace hocket::face
