#include "engine/start.hpp"

#include <algorithm>
#include <cmath>

#include "engine/fixed_point.hpp"
#include "engine/level.hpp"
#include "engine/start_window.hpp"

namespace hocket {

namespace {

constexpr double settled = 1e-9;  // the relative change of an output that no longer counts
constexpr int settling = 100;

using Drive = StartProgram::Drive;
using Leaf = StartProgram::Leaf;

// The outputs of all leaves at the start, evaluated until they agree, and what follows from them.
class Start {
  public:
    Start(Level& root, const StartProgram& program) : root_(root), program_(program) {
        gather(root);
        const std::size_t leaves = program.leaves.size();
        for (const Leaf& leaf : program.leaves)
            simulators_.push_back(levels_[leaf.level]->state.slots[leaf.child].simulator);
        y_.resize(static_cast<std::size_t>(program.outputs()));
        known_.resize(leaves, 0);
        initialised_.resize(leaves);
        u_.resize(leaves);
        for (std::size_t k = 0; k < leaves; ++k) {
            const Child& child = child_of(static_cast<int>(k));
            u_[k].assign(static_cast<std::size_t>(child.coefficients()), 0.0);
            most_ = std::max(most_, program.leaves[k].outputs);
        }
    }

    StartReport run(const StartTime& when, bool started) {
        if ((started || begin(when)) && settle() && look_for_numbers() && find_past()) {
            if (feed(root_, own_inputs())) note_late();
        }
        return std::move(report_);
    }

  private:
    void gather(Level& level) {
        const auto number = static_cast<std::size_t>(level.state.number);
        if (levels_.size() <= number) levels_.resize(number + 1);
        levels_[number] = &level;
        for (Level* inner : level.levels_inside()) gather(*inner);
    }
    const Child& child_of(int leaf) const {
        return levels_[program_.leaves[leaf].level]->state.children[program_.leaves[leaf].child];
    }
    bool fail(int leaf, Failure failure, Call call) {
        if (failure.kind == Failure::Kind::none) failure.kind = Failure::Kind::internal;
        failure.level = program_.leaves[leaf].level;
        failure.child = program_.leaves[leaf].child;
        failure.call = call;
        failure.tick = 0;
        report_.failure = failure;
        return false;
    }

    bool begin(const StartTime& when) {
        for (int leaf : program_.by_name)
            if (!simulators_[leaf]->start(when)) return fail(leaf, simulators_[leaf]->failure(), Call::start);
        return true;
    }

    double input(const Drive& drive) const {
        const bool unread = drive.kind == Drive::Kind::output && !known_[drive.leaf];
        if (drive.kind == Drive::Kind::none || (unread && drive.has_start)) return drive.start;
        if (drive.kind == Drive::Kind::constant) return drive.offset;
        const double value = drive.kind == Drive::Kind::own
                                 ? program_.starts[drive.port]
                                 : y_[program_.leaves[drive.leaf].first_output + drive.port];
        const bool plain = drive.gain == 1.0 && drive.offset == 0.0;
        return plain ? value : drive.gain * value + drive.offset;
    }
    void feed(int leaf) {
        const Leaf& each = program_.leaves[leaf];
        for (int index = 0; index < each.inputs; ++index)
            u_[leaf][index] = input(program_.drives[each.first_input + index]);
    }
    // Reads a leaf as it was fed, to `to`.
    bool read(int leaf, double* to) {
        const Leaf& each = program_.leaves[leaf];
        known_[leaf] = 1;
        if (each.once && initialised_[leaf].empty())
            initialised_[leaf].assign(u_[leaf].begin(), u_[leaf].begin() + each.inputs);
        if (simulators_[leaf]->output(0, u_[leaf].data(), to)) return true;
        const Failure failure = simulators_[leaf]->failure();  // none: the outputs speak for themselves
        return failure.kind == Failure::Kind::none || fail(leaf, failure, Call::output);
    }
    double* outputs(int leaf) { return y_.data() + program_.leaves[leaf].first_output; }

    bool evaluate() {
        for (std::size_t number = 0; number < program_.rounds.size(); ++number) {
            const StartProgram::Round& round = program_.rounds[number];
            if (!round.loop.empty()) {
                if (!solve(round, static_cast<int>(number))) return false;
                continue;
            }
            for (int leaf : round.leaves) feed(leaf);  // all before any is read
            for (int leaf : round.leaves)
                if (!read(leaf, outputs(leaf))) return false;
        }
        return true;
    }

    bool solve(const StartProgram::Round& round, int number) {
        const int size = static_cast<int>(round.loop.size());
        std::vector<double> room(static_cast<std::size_t>(size) * (size + 6)), found = y_;
        const auto evaluate = [&](const double* guess, double* to) {
            for (int k = 0; k < size; ++k) y_[round.loop[k]] = guess[k];
            for (int leaf : round.leaves) {
                feed(leaf);
                if (!read(leaf, found.data() + program_.leaves[leaf].first_output)) return false;
            }
            for (int k = 0; k < size; ++k) to[k] = found[round.loop[k]];
            return true;
        };
        for (int k = 0; k < size; ++k) room[k] = y_[round.loop[k]];
        const auto [end, residual] = find_fixed_point(room, size, evaluate);
        using End = FixedPointSearch::End;
        if (end == End::failed) return false;
        if (end != End::settled) {
            Failure failure;
            failure.kind =
                end == End::singular ? Failure::Kind::loop_singular : Failure::Kind::loop_not_converged;
            failure.value = residual;
            failure.port = number;
            return fail(round.leaves[0], failure, Call::output);
        }
        const std::vector<double> values(room.begin(), room.begin() + size);
        return evaluate(values.data(), room.data());
    }

    // Gives the final inputs to those whose initial state may depend on them, and finds what that changes.
    // Those that have `left` initialisation just now are read too: some FMUs compute outputs only then. Only
    // what drives others counts: what is merely observed must not change how often all are evaluated.
    bool update(const std::vector<std::uint8_t>& left) {
        report_.unsettled.clear();
        std::vector<double> before(static_cast<std::size_t>(most_));
        for (int leaf : program_.by_name) {
            const Leaf& each = program_.leaves[leaf];
            if (known_[leaf] && !left[leaf] && !each.settles) continue;
            double* now = outputs(leaf);
            std::copy(now, now + each.outputs, before.begin());
            feed(leaf);
            if (!read(leaf, now)) return false;
            bool any = false;
            const auto apart = [&](int port) {
                return std::fabs(now[port] - before[port]) > settled * std::max(1.0, std::fabs(before[port]));
            };
            const auto drives = [&](int port) {
                return program_.drives_others[each.first_output + port] != 0;
            };
            for (int port = 0; port < each.outputs; ++port) any = any || (drives(port) && apart(port));
            for (int port = 0; port < each.outputs; ++port) {
                if (!drives(port)) continue;
                if (!any)
                    now[port] = before[port];
                else if (apart(port))
                    report_.unsettled.push_back(each.first_output + port);
            }
        }
        return true;
    }

    bool settle() {
        for (int leaf : program_.first_reads) {
            feed(leaf);
            if (!read(leaf, outputs(leaf))) return false;
        }
        if (!evaluate()) return false;
        std::vector<int> waiting;
        for (int leaf : program_.by_name)
            if (program_.leaves[leaf].waits) waiting.push_back(leaf);
        std::vector<std::uint8_t> left(simulators_.size(), 0);
        for (int turn = 0; turn < settling; ++turn) {
            if (!update(left)) return false;
            std::fill(left.begin(), left.end(), 0);
            if (!report_.unsettled.empty()) {
                if (!evaluate()) return false;
                continue;
            }
            if (waiting.empty()) return true;
            for (int leaf : waiting) {  // all agree: initialisation is left together
                if (!simulators_[leaf]->ready()) return fail(leaf, simulators_[leaf]->failure(), Call::start);
                left[leaf] = 1;
            }
            waiting.clear();
        }
        Failure failure;
        failure.kind = Failure::Kind::not_settled;
        return fail(0, failure, Call::output);
    }

    bool look_for_numbers() {
        for (std::size_t leaf = 0; leaf < simulators_.size(); ++leaf)
            for (int port = 0; port < program_.leaves[leaf].outputs; ++port) {
                const double value = y_[program_.leaves[leaf].first_output + port];
                if (std::isfinite(value)) continue;
                Failure failure;
                failure.kind = Failure::Kind::not_finite;
                failure.port = port;
                failure.value = value;
                return fail(static_cast<int>(leaf), failure, Call::output);
            }
        return true;
    }

    void note_late() {
        for (std::size_t leaf = 0; leaf < simulators_.size(); ++leaf)
            for (std::size_t index = 0; index < initialised_[leaf].size(); ++index) {
                const double used = initialised_[leaf][index];
                const double now =
                    input(program_.drives[program_.leaves[leaf].first_input + static_cast<int>(index)]);
                if (std::fabs(used - now) > settled * std::max(1.0, std::fabs(now)))
                    report_.late.push_back({static_cast<int>(leaf), static_cast<int>(index), used, now});
            }
    }

    bool find_past() {
        const Curves cold = cold_curves(y_);
        std::vector<Curves> found;
        std::vector<int> rows;
        for (std::size_t leaf = 0; leaf < simulators_.size(); ++leaf)
            rows.push_back(child_of(static_cast<int>(leaf)).rows);
        for (const StartProgram::Window& each : program_.windows) {
            StartWindow window(program_, each, root_.state.clock, simulators_, rows);
            Curves curves;
            if (!window.find(y_, curves)) return fail(window.leaf, window.failure, window.failure.call);
            found.push_back(std::move(curves));
        }
        first_of_.resize(levels_.size());
        for (std::size_t leaf = 0; leaf < program_.leaves.size(); ++leaf) {
            const Leaf& each = program_.leaves[leaf];
            auto& firsts = first_of_[each.level];
            firsts.resize(levels_[each.level]->state.children.size(), -1);
            firsts[each.child] = each.first_output;
        }
        for (std::size_t number = 0; number < levels_.size(); ++number)
            if (levels_[number]) {  // a condensed one has no memory of its own
                const StartProgram::Past& past = program_.levels[number];
                store(*levels_[number], past.window < 0 ? cold : found[past.window], past.back);
            }
        return true;
    }

    // The curve of an output of a child, which may be a level itself.
    std::vector<double> curve_of(const Level& level, int child, int port, const Curves& curves) const {
        const auto number = static_cast<std::size_t>(level.state.number);
        if (child < static_cast<int>(first_of_[number].size()) && first_of_[number][child] >= 0)
            return curves[first_of_[number][child] + port];
        const auto* inner = dynamic_cast<const Level*>(level.state.slots[child].simulator);
        const auto [source, gain, offset, converts] = inner->outputs()[port];
        int from = static_cast<int>(inner->state.slots.size()) - 1;
        while (inner->state.slots[from].y > source) --from;
        std::vector<double> curve = curve_of(*inner, from, source - inner->state.slots[from].y, curves);
        if (converts) {
            for (double& c : curve) c = gain * c;
            curve[0] = curve[0] + offset;
        }
        return curve;
    }

    // Stores samples of the start in a level, and of a past where the curves tell one.
    void store(Level& level, const Curves& curves, std::int64_t length) {
        level.begin_start();
        ExchangeMemory& memory = level.state.memory;
        for (std::size_t child = 0; child < level.state.children.size(); ++child)
            for (int port = 0; port < level.state.children[child].outputs; ++port) {
                const int signal = level.state.slots[child].y + port;
                std::vector<double> curve = curve_of(level, static_cast<int>(child), port, curves);
                const int count = static_cast<int>(curve.size());
                memory.y[signal] = value_at(curve.data(), count, 1, -0.0);
                if (memory.ring_of[signal] < 0) continue;
                Ring& ring = memory.ring(signal);
                for (int back = count > 1 ? ring.depth - 1 : 0; back >= 0; --back) {
                    const double s = -level.state.clock.span(back * length);
                    double slope = 0.0;
                    if (ring.sloped) {
                        std::vector<double> moved = curve;
                        moved.push_back(0.0);
                        shift(moved.data(), count + 1, 1, s);
                        slope = moved[1];
                    }
                    ring.push(-back * length, value_at(curve.data(), count, 1, s), slope);
                }
            }
    }

    std::vector<double> own_inputs() const {
        std::vector<double> own(root_.state.memory.offered.coefficients.size(), 0.0);
        std::copy(program_.starts.begin(), program_.starts.end(), own.begin());
        return own;
    }

    // Fits every input once, so that what is in use at the start is known; finds the slopes under it.
    bool feed(Level& level, const std::vector<double>& inputs) {
        level.state.memory.offer(0, inputs.data());
        level.state.memory.admit();
        const int count = static_cast<int>(level.state.children.size());
        for (int k = 0; k < program_.levels[level.state.number].feeds; ++k) {
            for (int child = 0; child < count; ++child) {
                if (!level.feed_at_start(child)) return fail(level);
                if (auto* inner = dynamic_cast<Level*>(level.state.slots[child].simulator)) {
                    const double* u = level.state.memory.u.data() + level.state.slots[child].u;
                    if (!feed(*inner, {u, u + level.state.children[child].coefficients()})) return false;
                }
            }
            for (int child = 0; child < count; ++child)
                if (!level.slope_at_start(child)) return fail(level);
        }
        return true;
    }
    bool fail(const Level& level) {
        report_.failure = level.state.failures.first();
        return false;
    }

    Level& root_;
    const StartProgram& program_;
    std::vector<Level*> levels_;
    std::vector<Simulator*> simulators_;            // of the leaves
    std::vector<double> y_;                         // of all leaves
    std::vector<std::vector<double>> u_;            // per leaf
    std::vector<std::vector<double>> initialised_;  // per leaf that is initialised once: with which inputs
    std::vector<std::uint8_t> known_;               // the leaves that were read
    std::vector<std::vector<int>> first_of_;  // per level and child: its first output; -1: it is a level
    int most_ = 0;
    StartReport report_;
};

}  // namespace

StartReport start(Level& root, const StartProgram& program, const StartTime& when, bool started) {
    return Start(root, program).run(when, started);
}

}  // namespace hocket
