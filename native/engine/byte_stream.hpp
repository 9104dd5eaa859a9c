// Numbers and texts as bytes of a file, and back; bytes of a file may be anything.
// In:  numbers, texts, snapshots
// Out: bytes in the order of this machine; a reader that says whether there were enough
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/snapshot.hpp"

namespace hocket {

class ByteWriter {
  public:
    explicit ByteWriter(std::string& to) : to_(to) {}

    template <class T>
        requires std::is_arithmetic_v<T>
    void put(T value) {
        to_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void put(const std::string& text) {
        put(static_cast<std::uint64_t>(text.size()));
        to_.append(text);
    }
    template <class T> void put(const std::vector<T>& list) {
        put(static_cast<std::uint64_t>(list.size()));
        if constexpr (std::is_arithmetic_v<T>)
            to_.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(T));
        else
            for (const T& each : list) put(each);
    }

  private:
    std::string& to_;
};

class ByteReader {
  public:
    explicit ByteReader(const std::string& from) : at_(from.data()), left_(from.size()) {}

    template <class T>
        requires std::is_arithmetic_v<T>
    void get(T& value) {
        value = T{};
        if (!enough(sizeof value)) return;
        std::memcpy(&value, at_, sizeof value);
        skip(sizeof value);
    }
    void get(bool& value) {
        std::uint8_t byte = 0;
        get(byte);
        value = byte == 1;
        good_ = good_ && byte <= 1;
    }
    void get(std::string& text) {
        const std::size_t size = get_size(1);
        text.assign(at_, size);
        skip(size);
    }
    template <class T> void get(std::vector<T>& list) {
        const std::size_t size = get_size(std::is_arithmetic_v<T> ? sizeof(T) : sizeof(std::uint64_t));
        list.resize(size);
        if constexpr (std::is_arithmetic_v<T>) {
            if (size > 0) std::memcpy(list.data(), at_, size * sizeof(T));
            skip(size * sizeof(T));
        } else {
            for (T& each : list) get(each);
        }
    }
    // How many there are of what takes at least so many bytes each.
    std::size_t get_size(std::size_t each) {
        std::uint64_t size = 0;
        get(size);
        if (size <= left_ / each) return static_cast<std::size_t>(size);
        good_ = false;
        return 0;
    }
    bool good() const { return good_; }
    bool finished() const { return good_ && left_ == 0; }

  private:
    bool enough(std::size_t size) {
        good_ = good_ && size <= left_;
        return good_;
    }
    void skip(std::size_t size) {
        at_ += size;
        left_ -= size;
    }

    const char* at_;
    std::size_t left_;
    bool good_ = true;
};

inline void put(ByteWriter& to, const Snapshot& snapshot) {
    to.put(snapshot.numbers());
    to.put(snapshot.counts());
    to.put(snapshot.bytes);
    to.put(static_cast<std::uint64_t>(snapshot.inner.size()));
    for (const Snapshot& each : snapshot.inner) put(to, each);
}

// `deep`: how many levels may lie inside each other.
inline bool get(ByteReader& from, Snapshot& snapshot, int deep = 1000) {
    std::vector<double> numbers;
    std::vector<std::int64_t> counts;
    from.get(numbers);
    from.get(counts);
    from.get(snapshot.bytes);
    snapshot.fill(std::move(numbers), std::move(counts));
    snapshot.whole = snapshot.portable = true;
    snapshot.inner.resize(from.get_size(4 * sizeof(std::uint64_t)));
    for (Snapshot& each : snapshot.inner)
        if (deep == 0 || !get(from, each, deep - 1)) return false;
    return from.good();
}

}  // namespace hocket
