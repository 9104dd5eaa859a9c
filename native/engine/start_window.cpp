#include "engine/start_window.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/polynomial.hpp"
#include "engine/state_space.hpp"

namespace hocket {

namespace {

constexpr int most_sweeps = 40;
constexpr double trusted = 0.25;

// The largest change over the window, relative to the values.
double curve_change(const std::vector<double>& fresh, const std::vector<double>& old, double span) {
    const double scale = std::max(1.0, std::fabs(fresh[0]));
    double moved = 0.0;
    for (std::size_t k = 0; k < fresh.size(); ++k) {
        const double before = k < old.size() ? old[k] : 0.0;
        moved = moved + std::fabs(fresh[k] - before) * std::pow(span, static_cast<double>(k));
    }
    return moved / scale;
}

}  // namespace

Curves cold_curves(const std::vector<double>& y) {
    Curves curves;
    for (double value : y) curves.push_back({value});
    return curves;
}

StartWindow::StartWindow(const StartProgram& program, const StartProgram::Window& window, const Clock& clock,
                         std::vector<Simulator*> simulators, std::vector<int> rows)
    : program_(program),
      window_(window),
      clock_(clock),
      delta_(clock.span(window.ticks)),
      runners_(simulators.size()),
      rows_(std::move(rows)),
      held_(program.drives_others.size(), 0),
      driving_(program.drives_others.size(), 0) {
    for (std::size_t k = 0; k < simulators.size(); ++k) {
        const StartProgram::Leaf& leaf = program.leaves[k];
        Runner& runner = runners_[k];
        runner.simulator = simulators[k];
        runner.frozen = leaf.frozen;
        runner.rows = 1 + (leaf.highest < 0 ? window.degree : std::min(window.degree, leaf.highest));
        if (const int model = window.models[k]; model >= 0) {
            const Linear& linear = *program.models[static_cast<std::size_t>(model)];
            const double* z = simulators[k]->state();
            runner.stand_in = state_space(linear, std::vector<double>(z, z + linear.states), 0.0, nullptr);
            runner.simulator = runner.stand_in.get();
        }
    }
    for (const StartProgram::Drive& drive : program.drives)
        if (drive.kind == StartProgram::Drive::Kind::output)
            driving_[program.leaves[drive.leaf].first_output + drive.port] = 1;
}

bool StartWindow::fail(int number, Call call) {
    failure = runners_[number].simulator->failure();
    if (failure.kind == Failure::Kind::none) failure.kind = Failure::Kind::internal;
    failure.call = call;
    failure.tick = 0;
    leaf = number;
    return false;
}

bool StartWindow::begin() {
    for (std::size_t k = 0; k < runners_.size(); ++k) {
        Runner& runner = runners_[k];
        runner.simulator->set_rows(runner.rows);
        std::int64_t due = never_due;
        if (runner.simulator->takes_part()) {
            if (!runner.simulator->due(due)) return fail(static_cast<int>(k), Call::due);
            // others would take the polynomial through its jump for their past, and act before it
            runner.frozen = runner.frozen || due <= (window_.degree + 1) * window_.ticks;
        }
        if (!runner.simulator->prepare(window_.ticks)) return fail(static_cast<int>(k), Call::step);
        if (!runner.simulator->save(runner.saved)) return fail(static_cast<int>(k), Call::save);
    }
    return true;
}

bool StartWindow::end(const std::vector<int>& rows) {
    bool good = true;
    for (std::size_t k = 0; k < runners_.size(); ++k) {
        if (leaf != static_cast<int>(k) && !restore(static_cast<int>(k))) good = false;
        runners_[k].simulator->set_rows(rows[k]);
    }
    return good;
}

bool StartWindow::restore(int number) {
    Runner& runner = runners_[number];
    return runner.simulator->restore(runner.saved) || fail(number, Call::restore);
}

void StartWindow::fill_inputs(int number, const Curves& curves) {
    using Kind = StartProgram::Drive::Kind;
    const StartProgram::Leaf& leaf = program_.leaves[number];
    Runner& runner = runners_[number];
    const int width = leaf.inputs;
    std::vector<double>& u = runner.u;
    u.assign(static_cast<std::size_t>(runner.rows) * width, 0.0);
    for (int index = 0; index < width; ++index) {
        const StartProgram::Drive& drive = program_.drives[leaf.first_input + index];
        switch (drive.kind) {
            case Kind::none: u[index] = drive.start; break;
            case Kind::constant: u[index] = drive.offset; break;
            case Kind::own: u[index] = drive.gain * program_.starts[drive.port] + drive.offset; break;
            case Kind::output: {
                const auto& curve = curves[program_.leaves[drive.leaf].first_output + drive.port];
                const int count = std::min(runner.rows, static_cast<int>(curve.size()));
                for (int power = 0; power < count; ++power)
                    u[power * width + index] = drive.gain * curve[power];
                u[index] = u[index] + drive.offset;
                break;
            }
        }
    }
}

// The outputs after so many steps.
bool StartWindow::sample(int number, int step) {
    const StartProgram::Leaf& leaf = program_.leaves[number];
    Runner& runner = runners_[number];
    moved_ = runner.u;
    for (int j = 0; j < leaf.inputs; ++j)
        shift(moved_.data() + j, runner.rows, leaf.inputs, static_cast<double>(step) * delta_);
    y_.assign(static_cast<std::size_t>(leaf.outputs), 0.0);
    if (!runner.simulator->output(step * window_.ticks, moved_.data(), y_.data()) &&
        runner.simulator->failure().kind != Failure::Kind::none)
        return fail(number, Call::output);
    for (int port = 0; port < leaf.outputs; ++port) runner.samples[port].push_back(y_[port]);
    return true;
}

bool StartWindow::run_ahead(int number, bool& finite) {
    const StartProgram::Leaf& leaf = program_.leaves[number];
    Runner& runner = runners_[number];
    runner.samples.assign(static_cast<std::size_t>(leaf.outputs), {});
    if (!sample(number, 0)) return false;
    const int steps = runner.frozen ? 0 : window_.degree + 1;
    for (int k = 0; k < steps; ++k) {
        moved_ = runner.u;
        for (int j = 0; j < leaf.inputs; ++j)
            shift(moved_.data() + j, runner.rows, leaf.inputs, static_cast<double>(k) * delta_);
        const Span span = Span::of(clock_, k * window_.ticks, window_.ticks);
        if (!runner.simulator->step(span, moved_.data())) return fail(number, Call::step);
        if (!sample(number, k + 1)) return false;
    }
    finite = true;
    for (const auto& column : runner.samples)
        for (double value : column) finite = finite && std::isfinite(value);
    return true;
}

// A polynomial through all samples but the last one; constant where it is held.
std::vector<double> StartWindow::fit(int number, int port) const {
    const std::vector<double>& column = runners_[number].samples[port];
    const bool held = held_[program_.leaves[number].first_output + port] != 0;
    const std::size_t count =
        std::min<std::size_t>(held ? 1 : static_cast<std::size_t>(window_.degree) + 1, column.size());
    std::vector<double> table(column.begin(), column.begin() + static_cast<std::ptrdiff_t>(count));
    std::vector<double> nodes(count);
    for (std::size_t k = 0; k < count; ++k) nodes[k] = static_cast<double>(k) * delta_;
    divided_differences(nodes.data(), table.data(), static_cast<int>(count), 1);
    newton(nodes.data(), table.data(), static_cast<int>(count));
    return table;
}

bool StartWindow::predicts_last(const std::vector<double>& curve, const std::vector<double>& column) const {
    const double at = static_cast<double>(column.size() - 1) * delta_;
    const double missed =
        std::fabs(value_at(curve.data(), static_cast<int>(curve.size()), 1, at) - column.back());
    const auto [least, most] = std::minmax_element(column.begin(), column.end());
    double largest = 0.0;
    for (double value : column) largest = std::max(largest, std::fabs(value));
    return missed <= trusted * (*most - *least) + 1e-12 * largest;
}

// Curves that agree with what they lead to; none: there are none, or they are not finite.
StartWindow::Settled StartWindow::settle(const std::vector<double>& y, Curves& curves) {
    curves = cold_curves(y);
    double best = std::numeric_limits<double>::infinity();
    for (Runner& runner : runners_) runner.seen = false;
    const double span = static_cast<double>(window_.degree) * delta_;
    for (int sweep = 0; sweep < most_sweeps; ++sweep) {
        Curves fresh = curves;
        for (int number = 0; number < static_cast<int>(runners_.size()); ++number) {
            // all see the curves of the sweep before: their order must not matter
            Runner& runner = runners_[number];
            fill_inputs(number, curves);
            if (runner.seen && runner.u == runner.before) continue;  // the same samples
            runner.before = runner.u;
            runner.seen = true;
            bool finite = false;
            if (!restore(number) || !run_ahead(number, finite)) return Settled::failed;
            if (!finite) return Settled::none;
            for (int port = 0; port < program_.leaves[number].outputs; ++port)
                fresh[program_.leaves[number].first_output + port] = fit(number, port);
        }
        double change = 0.0;
        for (std::size_t k = 0; k < fresh.size(); ++k)
            change = std::max(change, curve_change(fresh[k], curves[k], span));
        curves = std::move(fresh);
        if (change <= 1e-14) break;
        if (sweep > window_.degree + 2 && change >= 0.9 * best) {
            if (change > 1e-8) return Settled::none;
            break;
        }
        best = std::min(best, change);
    }
    return Settled::good;
}

bool StartWindow::find(const std::vector<double>& y, Curves& curves) {
    if (!begin()) return false;
    while (true) {
        const Settled settled = settle(y, curves);
        if (settled == Settled::failed) {
            end(rows_);
            return false;
        }
        if (settled == Settled::none) {
            curves = cold_curves(y);
            break;
        }
        std::vector<int> doubtful, ahead;
        for (int number = 0; number < static_cast<int>(runners_.size()); ++number)
            for (int port = 0; port < program_.leaves[number].outputs; ++port) {
                const int at = program_.leaves[number].first_output + port;
                if (held_[at] || predicts_last(curves[at], runners_[number].samples[port])) continue;
                doubtful.push_back(at);
                if (driving_[at]) ahead.push_back(at);
                curves[at] = {runners_[number].samples[port][0]};
            }
        if (ahead.empty()) break;
        // what it drives is looked at anew, with that output held
        for (int at : doubtful) held_[at] = 1;
    }
    return end(rows_);
}

}  // namespace hocket
