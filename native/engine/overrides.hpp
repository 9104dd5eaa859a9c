// Overrides: what a port gets, or shows, until it is released. Used by those who step by hand, between steps.
// In:  ports of children by their numbers, and the values that they shall have
// Out: inputs that are not fed any more, and children whose outputs are replaced
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/input_fitting.hpp"
#include "engine/level_state.hpp"

namespace hocket {

// A simulator some of whose outputs are replaced; all else is its own.
class Overridden final : public Simulator {
  public:
    explicit Overridden(std::shared_ptr<Simulator> simulator) : inner(std::move(simulator)) {}

    const std::shared_ptr<Simulator> inner;
    std::map<int, double> values;  // per output that is replaced

    bool step(const Span& span, const double* u) override { return inner->step(span, u); }
    bool output(std::int64_t tick, const double* u, double* y) override {
        return inner->output(tick, u, y) && put(y);
    }
    bool newest(std::int64_t tick, const double* u, double* y) override {
        return inner->newest(tick, u, y) && put(y);
    }
    bool slope(std::int64_t tick, const double* u, double* dy) override {
        if (!inner->slope(tick, u, dy)) return false;
        for (const auto& each : values) dy[each.first] = 0.0;
        return true;
    }
    double* state() override { return inner->state(); }
    const void* hot() const override { return inner->hot(); }
    bool uses_seconds() const override { return inner->uses_seconds(); }
    bool prepare(std::int64_t ticks) override { return inner->prepare(ticks); }
    void set_rows(int rows) override { inner->set_rows(rows); }
    std::int64_t shown_at(std::int64_t tick) const override { return inner->shown_at(tick); }
    bool needs_python() const override { return inner->needs_python(); }
    bool foreign() const override { return inner->foreign(); }
    bool checks_itself() const override { return inner->checks_itself(); }
    bool save(Snapshot& to) override { return inner->save(to); }
    bool restore(Snapshot& from) override { return inner->restore(from); }
    bool takes_part() const override { return inner->takes_part(); }
    void set_clock(const Clock& clock) override { inner->set_clock(clock); }
    bool due(std::int64_t& tick) override { return inner->due(tick); }
    bool react(std::int64_t tick, int n, const double* u, const std::uint8_t* present,
               std::uint8_t* shown) override {
        return inner->react(tick, n, u, present, shown);
    }
    bool commit(bool& again) override { return inner->commit(again); }
    bool space_events(std::int64_t tick, double interval) override {
        return inner->space_events(tick, interval);
    }
    void forget_past() override { inner->forget_past(); }
    void settle_rows(const Snapshot* restorable, bool inside) override {
        inner->settle_rows(restorable, inside);
    }
    void set_watch(Watch* watch) override { inner->set_watch(watch); }
    bool get_text(int port, std::string& value) override { return inner->get_text(port, value); }
    bool set_text(int port, const std::string& value) override { return inner->set_text(port, value); }
    Failure failure() const override { return inner->failure(); }
    bool forget_failure() override { return inner->forget_failure(); }
    const Accounts* accounts() const override { return inner->accounts(); }
    const std::shared_ptr<Simulator>* itself() const override { return &inner; }

  private:
    bool put(double* y) const {
        for (const auto& [port, value] : values) y[port] = value;
        return true;
    }
};

// What drives the inputs of a level's children that are overridden, while it does not.
class Overrides {
  public:
    Overrides(LevelState& state, InputFitting& fitting) : state_(state), fitting_(fitting) {}

    // Each returns whether what is fed, or stepped how, has changed: the programs are to be prepared anew.
    bool set_input(int child, int input, double value);
    bool release_input(int child, int input);
    bool set_output(int child, int output, double value);
    bool release_output(int child, int output);
    // The output as its simulator shows it now, with no past; false: it cannot be evaluated.
    bool show_output(int child, int output, const double* polynomials);

  private:
    struct Drive {
        std::vector<Copy> copies;
        std::vector<int> fits;
    };
    void store(int signal, double value, double slope);
    void replace(int child, std::shared_ptr<Simulator> simulator);

    LevelState& state_;
    InputFitting& fitting_;
    std::map<std::pair<int, int>, Drive> drives_;  // per child and input
};

}  // namespace hocket
