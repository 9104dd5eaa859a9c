// Instants: what happens at one time, while no time passes. The twin of engine/reference/instants.py.
// In:  a level whose children stand at the time of an event
// Out: the same level after the event: states changed, and no sample from before it where a signal has
//      jumped
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/event_pace.hpp"
#include "engine/input_fitting.hpp"
#include "engine/operations.hpp"
#include "engine/row_buffer.hpp"
#include "engine/stepping.hpp"

namespace hocket {

// What drives an input: an output of a child (0 and above), an input of the level (-2 and below), or nothing.
struct InputSource {
    int number = -1;
    bool own() const { return number <= -2; }
    bool none() const { return number == -1; }
    int port() const { return -2 - number; }
};

// What instants need to know of a child.
struct Member {
    std::vector<InputSource> sources;       // per input
    std::vector<std::uint8_t> event_input;  // per input: it is present or absent
    std::vector<std::uint8_t> followed;     // per input: an output follows it at once
    std::vector<std::uint8_t> event_output;
    bool takes_part = false;
    bool level = false;  // it is a level with instants of its own
    // made when the level is prepared
    FedInputs inputs;
    std::vector<InputSource> silent;               // per input that is overridden: what would drive it
    std::vector<std::int64_t> heard;               // per input: which jump of its source it was told of last
    std::vector<std::uint8_t> present, shown, no;  // room
    std::vector<double> before;
    bool eager = false, reacted = false;
    std::int64_t stood = -1, floor = 0;  // the tick of its last instant; before `floor` it announces nothing
    int taking = -1;                     // which one it is of those that take part
    EventPace pace;
    bool spaced = false;  // it was asked to go on with fewer events
};

// What a level inside another is asked for.
class Instants {
  public:
    Instants(LevelState& state, InputFitting& fitting, Stepping& stepping, RowRecorder& recorder,
             ProgramRunner& runner)
        : state_(state), fitting_(fitting), stepping_(stepping), recorder_(recorder), runner_(runner) {}

    // building
    void add(Member member) { members_.push_back(std::move(member)); }
    void set_outputs(std::vector<int> outputs) { outputs_ = std::move(outputs); }
    void prepare();
    void collect_inputs();  // what feeds those that take part, also after an override
    // An input that is overridden is not told what its source does.
    void silence(int child, int input) {
        if (active()) std::swap(members_[child].sources[input], members_[child].silent[input]);
    }
    void unsilence(int child, int input) {
        if (!active()) return;
        silence(child, input);
        Member& member = members_[child];
        if (!member.sources[input].none()) member.heard[input] = jumps_of(member.sources[input]);
    }
    int size() const { return static_cast<int>(members_.size()); }
    bool active() const { return !members_.empty(); }

    // The tick of the earliest event that a child announces; `never_due`: none does.
    bool next_due(std::int64_t& tick);
    // Where a step from start ends: at the next event that is announced, at the end at the latest.
    bool end_before(std::int64_t start, std::int64_t end, std::int64_t& to);
    // Takes instant after instant until nothing is present or due.
    bool take(InstantOperation& operation);
    bool react(int child);
    bool commit(const std::vector<int>& children);
    // An algebraic loop at an instant: whether one of its inputs has jumped, and what its outputs have done.
    bool concerns(const std::vector<int>& children);
    void hear(const std::vector<int>& children);
    void note_jumps(int child);

    // the level as one that takes part in the instants of the level around it
    bool react_inside(std::int64_t tick, int n, const std::uint8_t* present, std::uint8_t* shown);
    bool commit_inside(bool& again);

    int n = 0;                 // which instant of this time it is; 0: none
    std::int64_t taken = -1;   // the tick of the newest instants
    bool around = false;       // there is a level around that has instants too
    std::int64_t longest = 0;  // ticks of a step of the level around
    std::int64_t asked = -1;   // the tick that the level around has asked for; below zero: none is around
    bool reacted() const { return reacted_; }
    void forget_shown() {
        if (any_shown_) [[unlikely]]
            std::fill(shown_.begin(), shown_.end(), 0);
        any_shown_ = false;
    }
    // Rolled back, a level meets its events once more, and perhaps at other times.
    void forget_floors() {
        for (Member& member : members_) member.stood = -1;
    }
    bool is_shown(int signal) const { return shown_[signal] != 0; }

    // What lasts from step to step; a rollback within a step leaves it alone.
    void list_state(SnapshotLine& line) {
        if (!active()) return;
        line(n, taken, asked, eager_, reacted_, any_shown_, jumps_, own_jumps_, shown_);
        for (Member& member : members_) {
            line(member.heard, member.eager, member.reacted, member.stood, member.floor, member.spaced);
            member.pace.list_state(line);
        }
    }

    bool continues = false;      // where events pile up, on with fewer of them
    Program* reacts = nullptr;   // of the level's Instant,
    Program* commits = nullptr;  // in two parts

  private:
    // What a child that takes part has announced, asked once where it stands.
    struct Announcement {
        int child = 0;
        std::int64_t at = -1, changes = -1;  // where, and after how many changes but steps
        std::int64_t due = never_due;
    };
    bool ask(Announcement& last);
    bool has_presence(const Member& member) const;
    std::int64_t jumps_of(const InputSource& source) const;
    void hear(Member& member);
    bool react_member(int child, bool called);
    std::int64_t rounding() const;
    bool mind_pace(int child);
    bool store_jumps(int child, bool whole, const std::uint8_t* shown);
    void forget(int signal);
    void keep_row(std::int64_t tick);

    LevelState& state_;
    InputFitting& fitting_;
    Stepping& stepping_;
    RowRecorder& recorder_;
    ProgramRunner& runner_;
    std::vector<Member> members_;
    std::vector<Announcement> taking_;             // per child that takes part
    std::int64_t eager_ = 0;                       // how many wait for another instant
    std::vector<int> outputs_;                     // of the level: the signals behind them
    std::vector<std::int64_t> jumps_, own_jumps_;  // per signal; per input of the level
    std::vector<std::int64_t> before_;             // room
    std::vector<std::uint8_t> shown_;              // per signal: the event is present in this instant
    std::vector<std::vector<int>> targets_;        // per signal: fitted inputs with a memory
    bool reacted_ = false;
    bool any_shown_ = false;
};

}  // namespace hocket
