// Rows of a table: the twin of engine/rows.py.
// In:  a level at the end of a step
// Out: time and values, appended; a row of the same time is replaced
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/snapshot.hpp"

namespace hocket {

struct LevelState;
class EnergyLedger;

// Rows waiting for the recorder: time, then one value per column.
struct RowBuffer {
    int width = 1;
    std::int64_t interval = 1;
    std::int64_t newest = -1;   // tick of the newest row,
    std::int64_t newest_n = 0;  // and which instant of that time it shows
    std::vector<double> data;
    std::int64_t taken = 0;   // values that were in it before
    std::int64_t final = -1;  // values, those taken included, that no rollback reaches; below zero: all

    std::size_t count() const { return data.size() / static_cast<std::size_t>(width); }
    std::int64_t size() const { return taken + static_cast<std::int64_t>(data.size()); }

    // Makes room for the row of a tick: that of the same tick and instant is replaced.
    void begin(std::int64_t tick, double time, std::int64_t n = 0) {
        if (!data.empty() && newest == tick && newest_n == n)
            data.resize(data.size() - static_cast<std::size_t>(width));
        newest = tick;
        newest_n = n;
        data.push_back(time);
    }
    void save(Snapshot& to) const {
        to.rows = size();
        to.keep(newest);
        to.keep(newest_n);
    }
    void restore(Snapshot& from) {
        data.resize(static_cast<std::size_t>(from.rows - taken));
        newest = from.take_count();
        newest_n = from.take_count();
    }
};

// What a column of a level's table shows.
struct Column {
    enum class Kind : int { input, output, ledger };
    Kind kind = Kind::output;
    int child = 0;
    int port = 0;    // of the child; of the ledger: three columns per bond
    int event = -1;  // the signal that is absent between instants; -1: it is not an event
};

// Writes the table of a level; without a buffer it writes nothing.
class RowRecorder {
  public:
    RowRecorder(const LevelState& state, const EnergyLedger& ledger) : state_(state), ledger_(ledger) {}

    void record(std::shared_ptr<RowBuffer> buffer, std::vector<Column> columns);
    void add_due(std::int64_t tick) {
        if (buffer_ && tick % buffer_->interval == 0) add(tick);
    }
    void add_last(std::int64_t tick) {
        if (buffer_ && tick > 0 && buffer_->newest != tick) add(tick);
    }
    // At an event; 0: before it.
    void add_event(std::int64_t tick, std::int64_t n) {
        if (buffer_) add(tick, n);
    }
    // The last look at an event: nothing new has happened.
    void renew(std::int64_t tick) {
        add_event(tick, buffer_ && buffer_->newest == tick ? buffer_->newest_n : 0);
    }
    std::vector<std::uint8_t>* shown = nullptr;  // per signal: the event is present
    void save(Snapshot& to) const {
        if (buffer_) buffer_->save(to);
    }
    void restore(Snapshot& from) {
        if (buffer_) buffer_->restore(from);
    }
    void settle(std::int64_t size) {
        if (buffer_) buffer_->final = size;
    }
    // `but_newest`: its newest row may yet be replaced.
    void settle_all(bool but_newest) {
        if (!buffer_) return;
        buffer_->final = buffer_->size();
        if (but_newest && !buffer_->data.empty()) buffer_->final -= buffer_->width;
    }

  private:
    void add(std::int64_t tick, std::int64_t n = 0);

    const LevelState& state_;
    const EnergyLedger& ledger_;
    std::shared_ptr<RowBuffer> buffer_;
    std::vector<Column> columns_;
};

}  // namespace hocket
