#include "fmu/model_exchange.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/polynomial.hpp"

namespace hocket {

namespace {

constexpr int rounds = 1000;         // of event iteration, before it is given up
constexpr int looks_at_most = 8;     // at outputs, before and after rates are read
constexpr int trials_at_most = 20;   // of steps completed between steps, to see what that moves
constexpr int judged_at_most = 100;  // steps, before outputs that stand still in all of them are believed

}  // namespace

Exchange::Exchange(Fmu& fmu, const Library& library, int version)
    : fmu_(fmu), setup_(*fmu.setup.exchange), calls_(library, version) {}

const std::vector<double>& Exchange::inputs() const { return fmu_.known_; }

bool Exchange::succeeds(fmi::Status status, const char* function) {
    last_ = status;
    return fmu_.good(status, function);
}

// the life

bool Exchange::initialise() {
    const Fmu::Experiment& run = fmu_.experiment_;
    told_.emplace();
    return succeeds(calls_.initialise(fmu_.instance_, run.tolerant, run.tolerance, *told_),
                    calls_.initialise_name());
}

bool Exchange::begin() {
    states_ = setup_.states;
    indicators_ = setup_.indicators;
    if (calls_.count_states) {
        std::size_t states = 0, indicators = 0;
        if (!succeeds(calls_.count_states, &states) || !succeeds(calls_.count_indicators, &indicators))
            return false;
        states_ = static_cast<int>(states);
        indicators_ = static_cast<int>(indicators);
    }
    for (auto* room : {&x_, &rate_, &past_, &next_x_, &far_x_, &stage_, &right_}) room->assign(states_, 0.0);
    placed_.assign(states_, std::nan(""));
    rates_.assign(static_cast<std::size_t>(states_) * setup_.method.b.size(), 0.0);
    for (auto* room : {&z_, &first_z_, &low_z_, &high_z_}) room->assign(indicators_, 0.0);
    above_.assign(indicators_, 0);
    texts_.clear();
    past_length_ = 0.0;
    rated_ = with_rates_ = changed_ = false;
    read_ = Read::nothing;
    looks_ = looks_at_most;
    doubted_ = setup_.doubted;
    at_steps_ = outputs_known_ = wanted_ = false;
    trials_ = trials_at_most;
    judged_ = judged_at_most;
    time_ = std::nan("");
    floor_ = -never;
    // with clocks event mode, which directly follows initialisation, is for the instants of its level
    changed_ = fmu_.in_events_;
    if (!changed_ && !settle()) return false;
    if (states_ > 0 && !succeeds(calls_.get_states, x_.data(), states_)) return false;
    placed_ = x_;
    settled_ = fmu_.known_;
    return true;
}

void Exchange::keep(std::vector<double>& numbers) const {
    numbers.assign(
        {time_, floor_, defined_ ? 1.0 : 0.0, next_, sided_ ? 1.0 : 0.0, past_length_, changed_ ? 1.0 : 0.0});
    for (const auto* part : {&settled_, &x_, &placed_, &past_, &first_z_})
        numbers.insert(numbers.end(), part->begin(), part->end());
    numbers.insert(numbers.end(), above_.begin(), above_.end());
}

void Exchange::recall(const std::vector<double>& numbers) {
    const double* from = numbers.data();
    time_ = from[0];
    floor_ = from[1];
    defined_ = from[2] != 0.0;
    next_ = from[3];
    sided_ = from[4] != 0.0;
    past_length_ = from[5];
    changed_ = from[6] != 0.0;
    from += 7;
    for (auto* part : {&settled_, &x_, &placed_, &past_, &first_z_}) {
        std::copy(from, from + part->size(), part->begin());
        from += part->size();
    }
    for (char& side : above_) side = static_cast<char>(*from++);
    rated_ = outputs_known_ = wanted_ = false;
    texts_.clear();
}

Exchange::Findings Exchange::findings() const {
    Findings found{{with_rates_ ? 1.0 : 0.0, static_cast<double>(looks_), at_steps_ ? 1.0 : 0.0,
                    static_cast<double>(trials_), static_cast<double>(judged_), wanted_ ? 1.0 : 0.0},
                   {}};
    for (const Doubted& one : doubted_) found.doubted.push_back(static_cast<int>(one.output));
    return found;
}

void Exchange::take(const Findings& findings) {
    if (findings.numbers.size() != 6) return;
    const auto count = [&](std::size_t k) {  // of a file: it may say anything
        const double number = findings.numbers[k];
        return number >= 0.0 && number <= judged_at_most ? static_cast<int>(number) : 0;
    };
    with_rates_ = findings.numbers[0] != 0.0;
    looks_ = count(1);
    at_steps_ = findings.numbers[2] != 0.0;
    trials_ = count(3);
    judged_ = count(4);
    wanted_ = findings.numbers[5] != 0.0;
    std::erase_if(doubted_, [&](const Doubted& one) {
        return std::find(findings.doubted.begin(), findings.doubted.end(), static_cast<int>(one.output)) ==
               findings.doubted.end();
    });
}

// events

// Event iteration, and back to continuous time.
bool Exchange::settle() {
    Events events;
    for (int round = 0; round == 0 || events.again; ++round) {
        if (round > rounds)
            return fmu_.wrong(std::string("its events do not settle: ") + calls_.update_name() +
                              " asked for " + std::to_string(rounds) + " rounds");
        if (!update(events)) return false;
    }
    return resume();
}

// One round of it.
bool Exchange::update(Events& events) {
    events = told_.value_or(Events{});
    if (!told_ && !succeeds(calls_.update(fmu_.instance_, events), calls_.update_name())) return false;
    told_.reset();
    if (events.terminates) fmu_.set_ended(true);
    fmu_.pending_ = fmu_.stale_ = false;
    defined_ = events.defined;
    next_ = events.next;
    changed_ = changed_ || events.states_changed;
    return fmu_.clocks_.empty() || fmu_.end_ticks();
}

bool Exchange::resume() {
    if (changed_ && states_ > 0) {
        if (!succeeds(calls_.get_states, x_.data(), states_)) return false;
        placed_ = x_;
        past_length_ = 0.0;
    }
    changed_ = sided_ = rated_ = outputs_known_ = wanted_ = fmu_.in_events_ = false;
    fmu_.clocks_.end_time();
    return !calls_.enter_continuous || succeeds(calls_.enter_continuous);
}

// instants

bool Exchange::react(double t, const double* u, const std::uint8_t* present, std::uint8_t* shown) {
    if (!fmu_.in_events_) {
        // the FMU sees the jump as one from the solution, whatever inputs output() has tried
        if (!put_states(x_.data()) || !put_solution() || !enter_events()) return false;
        fmu_.in_events_ = true;
        past_length_ = 0.0;
    }
    return fmu_.clocks_.empty() ? put_now(u) : fmu_.tick_clocks(t, u, present, shown);
}

// Whether these are the values of all inputs; what is clocked has none between its ticks.
bool Exchange::is_set(const std::vector<double>& values, const double* u) const {
    if (fmu_.clocks_.empty()) [[likely]]
        return std::equal(values.begin(), values.end(), u);
    for (std::size_t k = 0; k < values.size(); ++k)
        if (!is_closed(k) && values[k] != u[k]) return false;
    return true;
}

// Whether an input is a clock, or has clocks and none of them ticks.
bool Exchange::is_closed(std::size_t input) const {
    return input < fmu_.closed_in_.size() && fmu_.closed_in_[input];
}

// Inputs in event mode.
bool Exchange::put_now(const double* u) {
    if (is_set(fmu_.known_, u)) return true;
    fmu_.stale_ = true;
    return fmu_.set_groups(u);
}

bool Exchange::commit(bool& again) {
    Events events;
    if (!update(events)) return false;
    again = events.again && !events.terminates;
    return true;
}

Exchange::Postponed Exchange::postpone(double s, double h) {
    const bool at_end = s >= h - fmu_.slack(t_, h);
    if (fmu_.setup.grid == 0.0 || !(at_end || fmu_.setup.early)) return Postponed::no;
    fmu_.pending_ = true;
    if (s < h) fmu_.own_ = t_ + s;
    return at_end ? Postponed::at_end : Postponed::within;
}

bool Exchange::leave_instants() {
    const bool unsettled = fmu_.pending_ || fmu_.stale_, here = fmu_.in_events_;
    if (!unsettled && !here) return true;
    if (!here) {
        past_length_ = 0.0;
        if (!enter_events()) return false;
    }
    if (!(unsettled ? settle() : resume())) return false;
    settled_ = fmu_.known_;
    return true;
}

bool Exchange::put_solution() {
    for (std::size_t k = 0; k < settled_.size(); ++k)
        if (!is_closed(k) && std::isnan(settled_[k])) return true;
    return put_inputs(settled_.data());
}

bool Exchange::enter_events() {
    if (!std::isnan(time_)) floor_ = time_;
    return !calls_.enter_events || succeeds(calls_.enter_events);
}

bool Exchange::jump(const double* u) {
    if (!enter_events() || (fmu_.setup.inputs > 0 && !fmu_.set_groups(u)) || !settle()) return false;
    settled_ = fmu_.known_;
    return true;
}

bool Exchange::event() {
    past_length_ = 0.0;
    return enter_events() && settle() && (doubted_.empty() || know_outputs());
}

bool Exchange::set_text(int port, const std::string& value) {
    texts_.resize(fmu_.setup.texts_in.size());
    if (texts_[port] == value) return true;
    texts_[port] = value;
    if (fmu_.in_events_) {
        fmu_.stale_ = true;
        return fmu_.write_texts(&fmu_.setup.texts_in[port], 1, &value, fmu_.setup.binary_in[port]);
    }
    return enter_events() &&
           fmu_.write_texts(&fmu_.setup.texts_in[port], 1, &value, fmu_.setup.binary_in[port]) && settle();
}

double Exchange::due(double end) const {
    if (!defined_) return never;
    const double s = next_ - t_;
    if (s > end + resolution()) return never;
    return s > end - fmu_.setup.grid ? end : std::max(0.0, s);
}

// where the FMU stands

// What two times may differ by and still be the same.
double Exchange::resolution() const {
    return std::max(fmu_.setup.grid, 16.0 * std::numeric_limits<double>::epsilon() *
                                         std::max(std::fabs(t_), std::fabs(defined_ ? next_ : 0.0)));
}

// The time s seconds into the step: a time event is hit exactly, and none is gone behind.
double Exchange::at(double s) const {
    double time = t_ + s;
    if (defined_ && std::fabs(time - next_) <= resolution()) time = next_;
    return std::max(time, floor_);
}

bool Exchange::put_time(double time) {
    if (time == time_) return true;
    const bool good = succeeds(calls_.set_time, time);
    time_ = good ? time : std::nan("");
    return good;
}

// Those inputs that may change between events.
bool Exchange::put_inputs(const double* u) {
    if (setup_.all_move) {
        if (std::equal(fmu_.known_.begin(), fmu_.known_.end(), u)) return true;
        return fmu_.set_groups(u);
    }
    for (const Group& group : setup_.moving) {
        bool changed = false;
        for (int place : group.places) changed = changed || fmu_.known_[place] != u[place];
        if (!changed) continue;
        if (!fmu_.set_group(group, u)) return false;
        for (int place : group.places) fmu_.known_[place] = u[place];
    }
    return true;
}

bool Exchange::put_states(const double* x) {
    if (std::equal(placed_.begin(), placed_.end(), x)) return true;
    const bool good = succeeds(calls_.set_states, x, states_);
    std::copy(x, x + states_, placed_.begin());
    read_ = Read::nothing;
    if (!good) placed_[0] = std::nan("");
    return good;
}

// FMUs that remember what they computed may take outputs for computed when rates were read, and rates when
// outputs were: between them states are set anew, by way of numbers beside them for those that compare.
bool Exchange::turn_to(Read kind) {
    if (states_ > 0 && read_ != Read::nothing && read_ != kind) {
        beside_.assign(placed_.begin(), placed_.end());
        for (double& value : beside_) value = std::nextafter(value, INFINITY);
        if (!succeeds(calls_.set_states, beside_.data(), states_) ||
            !succeeds(calls_.set_states, placed_.data(), states_))
            return false;
    }
    read_ = kind;
    return true;
}

bool Exchange::stand(double s, const double* x) {
    const int inputs = fmu_.setup.inputs;
    if (!put_time(at(s))) return false;
    if (inputs > 0) {
        room_.resize(inputs);
        for (int j = 0; j < inputs; ++j) room_[j] = value_at(u_.data() + j, rows_, inputs, s + lag_);
        if (!put_inputs(room_.data())) return false;
    }
    return put_states(x);
}

bool Exchange::indicate(std::vector<double>& z) {
    return indicators_ == 0 ||
           (turn_to(Read::rates) && succeeds(calls_.get_indicators, z.data(), indicators_));
}

// Whether an indicator has left its side of zero; FMI counts zero as below.
bool Exchange::beyond(const std::vector<double>& z) const {
    for (int j = 0; j < indicators_; ++j)
        if ((z[j] > 0.0) != (above_[j] != 0) && !std::isnan(z[j])) return true;
    return false;
}

// a step made elsewhere

bool Exchange::enter(double t, int rows, const double* u) {
    if (!doubted_.empty() && !know_outputs()) return false;
    if (!leave_instants()) return false;
    t_ = std::isnan(fmu_.own_) ? t : fmu_.own_;
    lag_ = t_ - t;
    fmu_.own_ = std::nan("");
    rows_ = rows;
    u_.assign(u, u + static_cast<std::size_t>(rows) * fmu_.setup.inputs);
    const bool jumps = !is_set(settled_, u);
    const bool timed = due(0.0) <= 0.0 || wanted_;
    if (!jumps && !timed) return stand(0.0, x_.data());
    if (timed) past_length_ = 0.0;
    // the FMU sees the jump as one from the solution, whatever inputs output() has tried
    return put_time(at(0.0)) && put_states(x_.data()) && put_solution() && jump(u);
}

bool Exchange::rates(double s, const double* x, double* dx) {
    if (!stand(s, x) || !turn_to(Read::rates)) return false;
    return states_ == 0 || succeeds(calls_.get_rates, dx, states_);
}

bool Exchange::watch(double s, double ds) {
    if (sided_ || indicators_ == 0) return true;
    if (!stand(s, x_.data()) || !indicate(z_)) return false;
    bool undecided = false;
    for (int j = 0; j < indicators_; ++j) {
        above_[j] = z_[j] > 0.0;
        undecided = undecided || z_[j] == 0.0;
    }
    first_z_ = z_;
    sided_ = true;
    if (!undecided) return true;
    // an event often ends on zero: the side is where it goes from there
    if (!rates(s, x_.data(), stage_.data())) return false;
    const double ahead = ds * 0x1p-24;
    for (int i = 0; i < states_; ++i) stage_[i] = x_[i] + ahead * stage_[i];
    if (!stand(s + ahead, stage_.data()) || !indicate(z_)) return false;
    for (int j = 0; j < indicators_; ++j)
        if (first_z_[j] == 0.0) above_[j] = z_[j] > 0.0;
    return true;
}

bool Exchange::detect_crossing(double s, const double* x, bool& crossed) {
    if (!stand(s, x) || !indicate(z_)) return false;
    crossed = beyond(z_);
    return true;
}

bool Exchange::accept(double s, const double* x, bool& event) {
    event = false;
    if (x != x_.data()) std::copy(x, x + states_, x_.begin());
    rated_ = false;
    const bool looks = !doubted_.empty();
    if (looks && !know_outputs()) return false;
    if (!stand(s, x_.data())) return false;
    if (!looks && !setup_.completed_step && !at_steps_) return true;
    if (looks) {
        ahead_.resize(fmu_.setup.outputs);
        if (!turn_to(Read::outputs) || !read_fresh(ahead_.data())) return false;
    }
    bool terminates = false;
    if (!complete(event, terminates)) return false;
    if (terminates && setup_.completed_step) fmu_.set_ended(true);
    event = event && setup_.completed_step;  // what need not be told has nothing to ask for
    return !looks || judge_outputs();
}

// What stays as it was when time and states have moved, and follows when the step is completed, is computed
// there. What has moved before is not.
bool Exchange::judge_outputs() {
    const bool moved = ahead_ != completed_;
    std::erase_if(doubted_, [&](const Doubted& one) { return ahead_[one.output] != completed_[one.output]; });
    if (!fmu_.get_groups(completed_.data())) return false;
    if (follows(completed_.data())) note_steps();
    if (moved && --judged_ <= 0) doubted_.clear();
    return true;
}

bool Exchange::complete(bool& event, bool& terminates) {
    return succeeds(calls_.complete_step(fmu_.instance_, fmu_.lent_.empty(), event, terminates),
                    calls_.complete_step_name());
}

// A step of no length is completed, for outputs that are computed there: an event that it asks for is handled
// when the next step begins, under inputs that stay.
bool Exchange::complete_here(double* y) {
    bool event = false, terminates = false;
    if (!complete(event, terminates) || !fmu_.get_groups(y)) return false;
    wanted_ = wanted_ || (event && setup_.completed_step);
    return true;
}

// Whether an output in doubt has moved from where it was before the step was completed.
bool Exchange::follows(const double* y) const {
    return std::any_of(doubted_.begin(), doubted_.end(),
                       [&](const Doubted& one) { return y[one.output] != ahead_[one.output]; });
}

void Exchange::note_steps() {
    at_steps_ = true;
    doubted_.clear();
    fmu_.notes_.push_back(
        "its outputs follow its inputs only when a step is completed: hocket completes one wherever they are "
        "evaluated again");
}

// The outputs since the last completed step or event, read before anything moves.
bool Exchange::know_outputs() {
    if (outputs_known_) return true;
    completed_.resize(fmu_.setup.outputs);
    return outputs_known_ = fmu_.get_groups(completed_.data());
}

void Exchange::leave() { settled_ = fmu_.known_; }

// outputs

bool Exchange::evaluate(const double* u, double* y) {
    if (fmu_.reacting_ || (fmu_.in_events_ && fmu_.pending_)) return put_now(u) && fmu_.get_groups(y);
    if (fmu_.in_events_ && !leave_instants()) return false;
    bool moved = false;
    if (fmu_.setup.feeds_through) {
        moved = !is_set(fmu_.known_, u);
        if (moved && !doubted_.empty() && !know_outputs()) return false;
        for (Doubted& one : doubted_)
            one.reacts = std::any_of(one.inputs.begin(), one.inputs.end(),
                                     [&](int j) { return fmu_.known_[j] != u[j]; });
        if (!put_inputs(u)) return false;
        // the others take effect at an event
        const bool waits = fmu_.setup.grid > 0.0 && fmu_.pending_;
        if (!waits && !is_set(fmu_.known_, u) && !jump(u)) return false;
    }
    if (moved && states_ > 0) placed_[0] = std::nan("");
    if (!put_states(x_.data()) || !turn_to(Read::outputs)) return false;
    if (moved && at_steps_) return complete_here(y);
    if (!read_fresh(y)) return false;
    if (!moved || doubted_.empty() || !outputs_known_) return true;
    std::erase_if(doubted_, [&](const Doubted& one) { return y[one.output] != completed_[one.output]; });
    const auto reacts = [](const Doubted& one) { return one.reacts; };
    if (trials_ == 0 || std::none_of(doubted_.begin(), doubted_.end(), reacts)) return true;
    ahead_.assign(y, y + fmu_.setup.outputs);
    --trials_;
    if (!complete_here(y)) return false;
    std::copy(y, y + fmu_.setup.outputs, completed_.begin());
    if (follows(y)) note_steps();
    return true;
}

bool Exchange::read_fresh(double* y) {
    return !with_rates_ && looks_ == 0 ? fmu_.get_groups(y) : read_outputs(y);
}

// The outputs, twice: some FMUs compute them only where rates are read. That is looked for a few times.
bool Exchange::read_outputs(double* y) {
    if (!fmu_.get_groups(y)) return false;
    if (states_ == 0) return true;
    outputs_.assign(y, y + fmu_.setup.outputs);
    if (!succeeds(calls_.get_rates, right_.data(), states_) || !fmu_.get_groups(y)) return false;
    read_ = Read::outputs;
    if (looks_ > 0) --looks_;
    if (!std::equal(outputs_.begin(), outputs_.end(), y)) with_rates_ = true;
    return true;
}

// Time, states and moving inputs are set whatever was set before, each by way of a number beside it: FMUs
// that remember what they computed forget it at a set, some only where the number differs.
bool Exchange::place(const double* x, const double* u) {
    const auto beside = [](double value) { return double(std::nextafterf(float(value), INFINITY)); };
    const std::vector<Group>& moving = setup_.all_move ? fmu_.setup.set : setup_.moving;
    const double now = std::isnan(time_) ? fmu_.experiment_.t : time_;
    double past = std::nextafter(now, INFINITY);
    if (defined_ && past >= next_) past = now;
    for (const bool there : {false, true}) {
        if (!succeeds(calls_.set_time, there ? now : past)) return false;
        placed_.assign(x, x + states_);
        room_.assign(u, u + fmu_.setup.inputs);
        if (!there) {
            std::transform(placed_.begin(), placed_.end(), placed_.begin(), beside);
            for (const Group& group : moving)
                if (group.type <= Type::float32)
                    for (int place : group.places) room_[place] = beside(room_[place]);
        }
        for (const Group& group : moving) {
            if (!fmu_.set_group(group, room_.data())) return false;
            for (int place : group.places) fmu_.known_[place] = room_[place];
        }
        if (states_ > 0 && !succeeds(calls_.set_states, placed_.data(), states_)) return false;
    }
    return true;
}

// Rates are read first after a set, and so are outputs: some FMUs compute what they are asked for, and take
// the rest for computed.
bool Exchange::probe(const double* x, const double* u, double* dx, double* y) {
    if (!place(x, u) || (states_ > 0 && !succeeds(calls_.get_rates, dx, states_))) return false;
    return place(x, u) && read_outputs(y);
}

bool Exchange::nominals(double* values) {
    return states_ == 0 || succeeds(calls_.get_nominals, values, states_);
}

}  // namespace hocket
