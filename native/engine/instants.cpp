#include "engine/instants.hpp"

#include <algorithm>
#include <cmath>

namespace hocket {

namespace {

constexpr double roundings = 0x1p-42;  // of a time, relative to it

}  // namespace

void Instants::prepare() {
    if (!active()) return;
    jumps_.assign(state_.memory.y.size(), 0);
    shown_.assign(state_.memory.y.size(), 0);
    own_jumps_.assign(static_cast<std::size_t>(state_.memory.inputs), 0);
    targets_.assign(state_.memory.y.size(), {});
    before_.resize(outputs_.size());
    recorder_.shown = &shown_;
    for (std::size_t number = 0; number < members_.size(); ++number) {
        Member& member = members_[number];
        const int child = static_cast<int>(number);
        member.silent.assign(member.sources.size(), {});
        member.heard.assign(member.sources.size(), 0);
        member.present.assign(member.sources.size(), 0);
        member.shown.assign(member.event_output.size(), 0);
        member.no.assign(member.event_output.size(), 0);
        member.before.assign(member.event_output.size(), 0.0);
        if (member.takes_part) {
            member.taking = static_cast<int>(taking_.size());
            taking_.push_back({.child = child});
        }
        for (int fit : state_.children[number].fits)
            if (fitting_[fit].kind == FittedInput::Kind::nepce) targets_[fitting_[fit].source].push_back(fit);
    }
    collect_inputs();
}

void Instants::collect_inputs() {
    for (std::size_t number = 0; number < members_.size(); ++number)
        members_[number].inputs = fitting_.collect({static_cast<int>(number)});
}

// A step moves the tick of a child; all else that may change what it announces is counted by the level.
bool Instants::ask(Announcement& last) {
    Slot& slot = state_.slots[last.child];
    const std::int64_t changes = state_.reactions + state_.children[last.child].restored;
    if (last.at == slot.tick && last.changes == changes) return true;
    last.at = -1;
    last.due = never_due;
    if (!slot.simulator->due(last.due)) return state_.fail(slot, Call::due);
    last.at = slot.tick;
    last.changes = changes;
    return true;
}

bool Instants::next_due(std::int64_t& tick) {
    tick = never_due;
    for (Announcement& each : taking_) {
        if (!ask(each)) return false;
        tick = std::min(tick, each.due);
    }
    return true;
}

bool Instants::end_before(std::int64_t start, std::int64_t end, std::int64_t& to) {
    std::int64_t due = never_due;
    if (!next_due(due)) return false;
    to = due <= start ? end : std::min(end, due);
    return true;
}

void Instants::keep_row(std::int64_t tick) { recorder_.add_event(tick, 0); }

bool Instants::take(InstantOperation& operation) {
    if (asked >= 0 && state_.reached >= asked) return true;
    const std::int64_t tick = state_.reached;
    std::int64_t due = never_due;
    if (!next_due(due)) return false;
    if (due > tick && eager_ == 0) return true;
    keep_row(tick);
    taken = tick;
    for (n = 1; n <= operation.at_most; ++n) {
        reacted_ = false;
        for (Member& member : members_) member.reacted = false;
        if (!runner_.run(operation.body)) return false;
        if (!reacted_) break;
    }
    const bool endless = n > operation.at_most;
    n = 0;
    if (endless) {
        int child = 0;
        while (!members_[child].reacted) ++child;
        return state_.fail({.kind = Failure::Kind::endless_instants,
                            .child = child,
                            .port = operation.at_most,
                            .tick = tick});
    }
    std::fill(shown_.begin(), shown_.end(), 0);
    return true;
}

std::int64_t Instants::jumps_of(const InputSource& source) const {
    return source.own() ? own_jumps_[source.port()] : jumps_[source.number];
}

bool Instants::has_presence(const Member& member) const {
    for (std::size_t k = 0; k < member.sources.size(); ++k)
        if (!member.sources[k].none() && jumps_of(member.sources[k]) != member.heard[k]) return true;
    return false;
}

void Instants::hear(Member& member) {
    for (std::size_t k = 0; k < member.sources.size(); ++k)
        if (!member.sources[k].none()) member.heard[k] = jumps_of(member.sources[k]);
}

bool Instants::react(int child) {
    Member& member = members_[child];
    Slot& slot = state_.slots[child];
    bool called = false;
    std::int64_t due = never_due;
    if (member.takes_part) {
        if (!ask(taking_[member.taking])) return false;
        due = taking_[member.taking].due;
        // no step has been made since the last instant that could have found it
        if (due < member.floor && slot.tick == member.stood && !member.level && !member.eager &&
            !member.reacted)
            return state_.fail({.kind = Failure::Kind::past_event,
                                .child = child,
                                .tick = state_.reached,
                                .value = state_.clock.time(due)});
        called = !member.reacted && (member.eager || due <= state_.reached);
        if (called && due <= state_.reached && !member.level && !member.spaced && !mind_pace(child))
            return false;
    }
    if (!called && !has_presence(member)) return true;
    member.stood = slot.tick;
    // an event that is met late may be followed by another one that is late
    member.floor = due < state_.reached ? due + 1 : state_.reached - rounding();
    return react_member(child, called);
}

// By how many ticks a time that is announced may miss the time reached, and mean it.
std::int64_t Instants::rounding() const {
    const Clock& clock = state_.clock;
    return clock.quantum +
           static_cast<std::int64_t>(roundings * std::fabs(clock.time(state_.reached)) / clock.span(1));
}

// Counts an event of a child; false where they pile up or chatter, unless it can go on.
bool Instants::mind_pace(int child) {
    constexpr std::int64_t places = 4096, steps = 1 << 20;
    constexpr double spacing = 0x1p-8;
    Member& member = members_[child];
    Slot& slot = state_.slots[child];
    const Clock& clock = state_.clock;
    const std::int64_t tick = state_.reached, place = clock.quantum;
    const double t = clock.time(tick), one = clock.span(1);
    const std::int64_t shortest = std::max(std::max(place, std::min(places * place, state_.length / steps)),
                                           static_cast<std::int64_t>(roundings * std::fabs(t) / one));
    const Pace found = member.pace.count(tick, state_.length, shortest);
    if (found == Pace::fine) return true;
    if (!continues)
        return state_.fail({.kind = found == Pace::zeno ? Failure::Kind::zeno : Failure::Kind::chattering,
                            .child = child,
                            .tick = tick,
                            .value = t + member.pace.left() * one});
    member.spaced = true;
    ++state_.reactions;
    return slot.simulator->space_events(tick, spacing * clock.span(state_.length)) ||
           state_.fail(slot, Call::space_events);
}

bool Instants::react_member(int child, bool called) {
    Member& member = members_[child];
    Slot& slot = state_.slots[child];
    bool follows = false, events = called;
    for (std::size_t k = 0; k < member.sources.size(); ++k) {
        member.present[k] = !member.sources[k].none() && jumps_of(member.sources[k]) != member.heard[k];
        follows = follows || (member.present[k] && member.followed[k]);
        events = events || (member.present[k] && member.event_input[k]);
    }
    hear(member);
    if (!runner_.feed(child, member.inputs)) return false;
    if (!member.takes_part) return !follows || store_jumps(child, false, nullptr);
    eager_ -= member.eager;
    member.eager = false;
    ++state_.reactions;
    if (!reacted_) std::fill(shown_.begin(), shown_.end(), 0);
    reacted_ = member.reacted = true;
    std::fill(member.shown.begin(), member.shown.end(), 0);
    const double* u = stepping_.inputs_now(child);
    if (!slot.simulator->react(slot.tick, n, u, member.present.data(), member.shown.data()))
        return state_.fail(slot, Call::react);
    return store_jumps(child, events && !member.level, member.shown.data());
}

void Instants::forget(int signal) {
    if (state_.memory.ring_of[signal] >= 0) state_.memory.ring(signal).count = 1;
    for (int fit : targets_[signal]) fitting_.filter(fit).fresh = true;
}

// Evaluates the outputs of a child at an instant; where one jumps, what was before it is forgotten.
bool Instants::store_jumps(int child, bool whole, const std::uint8_t* shown) {
    Member& member = members_[child];
    Slot& slot = state_.slots[child];
    const int count = static_cast<int>(member.event_output.size());
    if (count == 0) return true;
    double* y = state_.memory.y.data() + slot.y;
    std::copy(y, y + count, member.before.begin());
    const std::uint8_t* here = shown ? shown : member.no.data();
    if (!stepping_.read_at_instant(slot, member.event_output, here)) return false;
    note_jumps(child);
    for (int port = 0; port < count; ++port) {
        const bool event = member.event_output[port];
        if (event && !here[port]) continue;
        if (event && !shown_[slot.y + port]) {
            ++jumps_[slot.y + port];
            shown_[slot.y + port] = 1;
            any_shown_ = true;
        }
        if (whole) forget(slot.y + port);
    }
    return true;
}

void Instants::note_jumps(int child) {
    Member& member = members_[child];
    const Slot& slot = state_.slots[child];
    for (std::size_t port = 0; port < member.event_output.size(); ++port) {
        const int signal = slot.y + static_cast<int>(port);
        if (member.event_output[port] || state_.memory.y[signal] == member.before[port]) continue;
        ++jumps_[signal];
        forget(signal);
    }
}

bool Instants::concerns(const std::vector<int>& children) {
    const bool any = std::any_of(children.begin(), children.end(),
                                 [&](int child) { return has_presence(members_[child]); });
    if (!any) return false;
    for (int child : children) {
        Member& member = members_[child];
        const double* y = state_.memory.y.data() + state_.slots[child].y;
        std::copy(y, y + member.before.size(), member.before.begin());
        hear(member);
    }
    return true;
}

void Instants::hear(const std::vector<int>& children) {
    for (int child : children) {
        note_jumps(child);
        hear(members_[child]);
    }
}

bool Instants::commit(const std::vector<int>& children) {
    for (int child : children) {
        Member& member = members_[child];
        if (!member.reacted) continue;
        bool again = false;
        Slot& slot = state_.slots[child];
        ++state_.reactions;
        if (!slot.simulator->commit(again)) return state_.fail(slot, Call::commit);
        eager_ += again && !member.eager;
        member.eager = member.eager || again;
    }
    for (int child : children)
        if (members_[child].reacted && !store_jumps(child, false, nullptr)) return false;
    return true;
}

bool Instants::react_inside(std::int64_t tick, int number, const std::uint8_t* present, std::uint8_t* shown) {
    for (std::size_t port = 0; port < own_jumps_.size(); ++port)
        if (present[port]) ++own_jumps_[port];
    if (n != number || taken != tick) {  // else once more in the same instant
        state_.reached = tick;
        n = 0;
        if (number == 1) keep_row(tick);
        n = number;
        taken = tick;
        reacted_ = false;
        for (Member& member : members_) member.reacted = false;
    }
    for (std::size_t k = 0; k < outputs_.size(); ++k) before_[k] = jumps_[outputs_[k]];
    if (!runner_.run(*reacts)) return false;
    for (std::size_t k = 0; k < outputs_.size(); ++k) shown[k] = jumps_[outputs_[k]] != before_[k];
    return true;
}

bool Instants::commit_inside(bool& again) {
    if (!runner_.run(*commits)) return false;
    n = 0;
    std::fill(shown_.begin(), shown_.end(), 0);
    again = false;
    for (const Member& member : members_) {
        if (member.eager) again = true;
        for (std::size_t k = 0; k < member.sources.size() && !again; ++k)
            again = (member.takes_part || member.followed[k]) && !member.sources[k].none() &&
                    jumps_of(member.sources[k]) != member.heard[k];
    }
    return true;
}

}  // namespace hocket
