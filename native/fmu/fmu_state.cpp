// The state of an FMU as bytes, for a checkpoint: another instance of the same FMU goes on from there.
// In:  a saved state, or bytes that may be anything
// Out: bytes, or an instance at that state
#include <cmath>

#include "engine/byte_stream.hpp"
#include "fmu/fmu.hpp"
#include "fmu/model_exchange.hpp"

namespace hocket {

namespace {

constexpr std::uint32_t layout = 1;

void write(ByteWriter& to, const Ratio& ratio) {
    to.put(ratio.n);
    to.put(ratio.d);
    to.put(ratio.fits);
    to.put(ratio.measured);
}

void read(ByteReader& from, Ratio& ratio) {
    from.get(ratio.n);
    from.get(ratio.d);
    from.get(ratio.fits);
    from.get(ratio.measured);
    if (ratio.d <= 0) ratio = Ratio{};  // nothing divides by it
}

bool is_same(double one, double other) { return one == other || (std::isnan(one) && std::isnan(other)); }

}  // namespace

bool Fmu::dump(const Saved& saved, bool now, std::string& to) {
    to.clear();
    if (!can_serialise())
        return wrong("it cannot write down its state: its binary has no functions for that", otherwise);
    if (saved.life != life_ || !saved.state) return wrong("the state was saved before its last start");
    std::string own;
    std::size_t size = 0;
    if (!call(state_size_, saved.state, &size)) return false;
    if (size > std::size_t{1} << 40)
        return wrong("it says that its state has " + std::to_string(size) + " bytes");
    own.resize(size);
    if (!call(serialise_, saved.state, own.data(), size)) return false;
    std::vector<double> y;
    if (now && !exchange_) {
        y.resize(static_cast<std::size_t>(setup.outputs));
        if (!get_groups(y.data())) return false;
    }
    ByteWriter out(to);
    out.put(layout);
    out.put(own);
    out.put(saved.known);
    out.put(saved.next_event);
    out.put(saved.own);
    for (bool each : {saved.ended, saved.pending, saved.in_events, saved.stale}) out.put(each);
    out.put(static_cast<std::uint64_t>(saved.clocks.size()));
    for (const ClockState& clock : saved.clocks) {
        for (bool each : {clock.waits, clock.ticked, clock.active}) out.put(each);
        out.put(clock.count);
        for (const Ratio* each : {&clock.base, &clock.next, &clock.interval}) write(out, *each);
    }
    out.put(saved.closed_in);
    out.put(saved.closed_out);
    out.put(saved.last);
    out.put(static_cast<std::uint64_t>(saved.texts_in.size()));
    for (const auto& text : saved.texts_in) {
        out.put(text.has_value());
        out.put(text.value_or(""));
    }
    out.put(saved.texts_out);
    out.put(saved.solution);
    out.put(watched_);
    const Exchange::Findings found = exchange_ ? exchange_->findings() : Exchange::Findings{};
    out.put(found.numbers);
    out.put(found.doubted);
    out.put(y);
    return true;
}

bool Fmu::load(const std::string& from) {
    hot_.stop = -never;
    if (!ready()) return false;
    if (!can_serialise())
        return wrong("it cannot read a state that was written down: its binary has no functions for that");
    Saved saved(std::shared_ptr<Fmu>(std::shared_ptr<Fmu>{}, this));
    std::string own;
    std::uint32_t version = 0;
    int watched = 0;
    std::vector<double> y;
    Exchange::Findings found;
    ByteReader in(from);
    in.get(version);
    in.get(own);
    in.get(saved.known);
    in.get(saved.next_event);
    in.get(saved.own);
    for (bool* each : {&saved.ended, &saved.pending, &saved.in_events, &saved.stale}) in.get(*each);
    saved.clocks.resize(in.get_size(3));
    for (ClockState& clock : saved.clocks) {
        for (bool* each : {&clock.waits, &clock.ticked, &clock.active}) in.get(*each);
        in.get(clock.count);
        for (Ratio* each : {&clock.base, &clock.next, &clock.interval}) read(in, *each);
    }
    in.get(saved.closed_in);
    in.get(saved.closed_out);
    in.get(saved.last);
    saved.texts_in.resize(in.get_size(1));
    for (auto& text : saved.texts_in) {
        bool there = false;
        std::string value;
        in.get(there);
        in.get(value);
        if (there) text = std::move(value);
    }
    in.get(saved.texts_out);
    in.get(saved.solution);
    in.get(watched);
    in.get(found.numbers);
    in.get(found.doubted);
    in.get(y);
    std::vector<double> solution;
    if (exchange_) exchange_->keep(solution);
    const auto is_one_per_port = [](const auto& list, int ports) {
        return list.empty() || list.size() == static_cast<std::size_t>(ports);
    };
    const bool fits =
        in.finished() && version == layout && saved.known.size() == known_.size() &&
        saved.clocks.size() == clocks_.state.size() && is_one_per_port(saved.closed_in, setup.inputs) &&
        is_one_per_port(saved.closed_out, setup.outputs) && is_one_per_port(saved.last, setup.outputs) &&
        saved.texts_in.size() == texts_in_.size() && saved.texts_out.size() == texts_out_.size() &&
        saved.solution.size() == solution.size() && is_one_per_port(y, setup.outputs);
    if (!fits) return wrong("the state that was written down is not one of this FMU");
    if (!call(deserialise_, own.data(), own.size(), &saved.state)) return false;
    if (!saved.state) return wrong("it read a state that was written down, and handed out none");
    const bool there = recall(saved);
    free_state(&saved.state);
    saved.state = nullptr;
    if (!there) return false;
    watched_ = watched;
    if (exchange_) exchange_->take(found);
    if (y.empty()) return true;
    std::vector<double> shown(y.size());
    if (!get_groups(shown.data())) return false;
    for (std::size_t k = 0; k < y.size(); ++k)
        if (!is_same(y[k], shown[k]))
            return wrong("its state was written down and read again, and its output number " +
                             std::to_string(k + 1) + " is " + written(shown[k]) + " in place of " +
                             written(y[k]) + ": its serialised state is not whole",
                         otherwise);
    return true;
}

}  // namespace hocket
