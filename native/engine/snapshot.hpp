// Where a simulator stood, for it to go back to.
// In:  numbers and counts, in the order in which they are kept
// Out: the same, in the same order; its memory is used again, so that nothing is allocated in the loop
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hocket {

class Snapshot {
  public:
    void begin() {
        numbers_.clear();
        counts_.clear();
    }
    void rewind() { number_ = count_ = 0; }

    void keep(double number) { numbers_.push_back(number); }
    void keep(const std::vector<double>& numbers) {
        numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
    }
    void keep(const double* numbers, int count) { numbers_.insert(numbers_.end(), numbers, numbers + count); }
    void keep(std::int64_t count) { counts_.push_back(count); }
    void keep(const std::vector<std::int64_t>& counts) {
        counts_.insert(counts_.end(), counts.begin(), counts.end());
    }

    void take(double& number) { number = numbers_[number_++]; }
    void take(std::vector<double>& numbers) { take(numbers.data(), static_cast<int>(numbers.size())); }
    void take(double* numbers, int count) {
        for (int k = 0; k < count; ++k) numbers[k] = numbers_[number_++];
    }
    void take(std::int64_t& count) { count = counts_[count_++]; }
    void take(std::vector<std::int64_t>& counts) {
        for (std::int64_t& count : counts) take(count);
    }
    std::int64_t take_count() { return counts_[count_++]; }
    const std::vector<double>& numbers() const { return numbers_; }

    bool whole = false;     // of all that lasts, between two steps; not: of what a rollback within one needs
    std::int64_t rows = 0;  // how many values its rows had
    std::vector<Snapshot> inner;       // of the simulators inside
    std::shared_ptr<void> of_its_own;  // what only the simulator knows: the state of an FMU, a Python object

  private:
    std::vector<double> numbers_;
    std::vector<std::int64_t> counts_;
    std::size_t number_ = 0, count_ = 0;
};

// Keeps what is listed, or takes it back: what lasts is listed once for both.
class SnapshotLine {
  public:
    SnapshotLine(Snapshot& snapshot, bool takes) : snapshot_(snapshot), takes_(takes) {}

    template <class... Listed> void operator()(Listed&... listed) { (pass(listed), ...); }
    // A list that is longer at some times than at others.
    template <class T> void growing(std::vector<T>& list) {
        auto size = static_cast<std::int64_t>(list.size());
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
