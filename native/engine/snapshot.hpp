// Where a simulator stood, for it to go back to.
// In:  numbers and counts, in the order in which they are kept
// Out: the same, in the same order; its memory is used again, so that nothing is allocated in the loop
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hocket {

class Snapshot {
  public:
    void begin() {
        numbers_.clear();
        counts_.clear();
    }
    void rewind() {
        number_ = count_ = 0;
        lacks_ = false;
    }

    void keep(double number) { numbers_.push_back(number); }
    void keep(const std::vector<double>& numbers) {
        numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
    }
    void keep(const double* numbers, int count) { numbers_.insert(numbers_.end(), numbers, numbers + count); }
    void keep(std::int64_t count) { counts_.push_back(count); }
    void keep(const std::vector<std::int64_t>& counts) {
        counts_.insert(counts_.end(), counts.begin(), counts.end());
    }

    // What was not kept is taken as zeros, and `fits` says so: a snapshot may come from a file.
    void take(double& number) { take(&number, 1); }
    void take(std::vector<double>& numbers) { take(numbers.data(), static_cast<int>(numbers.size())); }
    void take(double* numbers, int count) {
        const auto size = static_cast<std::size_t>(count);
        if (numbers_.size() - number_ < size) [[unlikely]] {
            lacks_ = true;
            std::fill_n(numbers, size, 0.0);
            return;
        }
        std::copy_n(numbers_.begin() + static_cast<std::ptrdiff_t>(number_), size, numbers);
        number_ += size;
    }
    void take(std::int64_t& count) { count = take_count(); }
    void take(std::vector<std::int64_t>& counts) {
        for (std::int64_t& count : counts) take(count);
    }
    std::int64_t take_count() {
        if (count_ == counts_.size()) [[unlikely]] {
            lacks_ = true;
            return 0;
        }
        return counts_[count_++];
    }
    // How long a list is: not longer than what is there.
    std::size_t take_size() {
        const std::int64_t size = take_count();
        const std::size_t left = std::max(numbers_.size() - number_, counts_.size() - count_);
        if (size >= 0 && static_cast<std::uint64_t>(size) <= left) return static_cast<std::size_t>(size);
        lacks_ = true;
        return 0;
    }
    Snapshot& part(std::size_t number) {
        if (number >= inner.size()) [[unlikely]] {
            lacks_ = true;
            inner.resize(number + 1);
        }
        return inner[number];
    }
    void refuse() { lacks_ = true; }  // it holds what cannot be
    // Whether all that was kept was taken, and nothing else.
    bool fits() const {
        return !lacks_ && number_ == numbers_.size() && count_ == counts_.size() &&
               std::all_of(inner.begin(), inner.end(), [](const Snapshot& each) { return each.fits(); });
    }
    const std::vector<double>& numbers() const { return numbers_; }
    const std::vector<std::int64_t>& counts() const { return counts_; }
    void fill(std::vector<double> numbers, std::vector<std::int64_t> counts) {
        numbers_ = std::move(numbers);
        counts_ = std::move(counts);
    }

    bool whole = false;     // of all that lasts, between two steps; not: of what a rollback within one needs
    bool portable = false;  // for a file: rows are left out, and the states of FMUs are bytes
    std::int64_t rows = 0;  // how many values its rows had
    std::vector<Snapshot> inner;       // of the simulators inside
    std::shared_ptr<void> of_its_own;  // what only the simulator knows: the state of an FMU, a Python object
    std::string bytes;                 // the same for a file

  private:
    std::vector<double> numbers_;
    std::vector<std::int64_t> counts_;
    std::size_t number_ = 0, count_ = 0;
    bool lacks_ = false;  // more was taken than was kept
};

// Keeps what is listed, or takes it back: what lasts is listed once for both.
class SnapshotLine {
  public:
    SnapshotLine(Snapshot& snapshot, bool takes) : snapshot_(snapshot), takes_(takes) {}

    template <class... Listed> void operator()(Listed&... listed) { (pass(listed), ...); }
    // A list that is longer at some times than at others.
    template <class T> void growing(std::vector<T>& list) {
        auto size = static_cast<std::int64_t>(list.size());
        if (takes_)
            size = static_cast<std::int64_t>(snapshot_.take_size());
        else
            pass(size);
        list.resize(static_cast<std::size_t>(size));
        pass(list);
    }

  private:
    void pass(double& number) { takes_ ? snapshot_.take(number) : snapshot_.keep(number); }
    template <class T> void pass(T& count) {
        if (takes_)
            count = static_cast<T>(snapshot_.take_count());
        else
            snapshot_.keep(static_cast<std::int64_t>(count));
    }
    template <class T> void pass(std::vector<T>& list) {
        for (T& each : list) pass(each);
    }

    Snapshot& snapshot_;
    bool takes_;
};

}  // namespace hocket
