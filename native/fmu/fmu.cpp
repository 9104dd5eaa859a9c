#include "fmu/fmu.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "fmu/model_exchange.hpp"

namespace hocket {

namespace {

// Whether all values are reals, set or got by one call in the order of the ports.
bool straight(const std::vector<Group>& groups, int count) {
    if (count == 0) return groups.empty();
    if (groups.size() != 1 || groups[0].type != Type::real) return false;
    const auto& places = groups[0].places;
    if (static_cast<int>(places.size()) != count) return false;
    for (int k = 0; k < count; ++k)
        if (places[k] != k) return false;
    return true;
}

bool differ(double a, double b) {
    return !(std::fabs(a - b) <= 1e-9 * std::max({1.0, std::fabs(a), std::fabs(b)})) &&
           !(std::isnan(a) && std::isnan(b));
}

// What Hot::stage counts: no other version has a short way.
constexpr const char* stages[] = {"fmi2SetReal", "fmi2DoStep", "fmi2GetReal"};

}  // namespace

const char* const Fmu::otherwise =
    "let it be started again instead: `Replay(fmu)`, or `replay = true` in a file; or take an algorithm "
    "that does not roll back. `hocket probe` tries its state out";

std::string Fmu::written(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.12g", value);
    return text;
}

Fmu::Fmu(std::shared_ptr<Library> library, Setup given)
    : setup(std::move(given)),
      library_(std::move(library)),
      callee_(setup.name.c_str(), setup.file.c_str(), &hot_.stage, stages) {
    straight_in_ = straight(setup.set, setup.inputs);
    straight_out_ = straight(setup.get, setup.outputs);
    known_.assign(setup.inputs, std::nan(""));
}

Fmu::~Fmu() = default;

void Fmu::integrate(int version) {
    if (setup.exchange) exchange_ = std::make_unique<Exchange>(*this, *library_, version);
}

void Fmu::warm_up() {
    Hot& hot = hot_;
    hot.instance = instance_;
    hot.calls = library_->calls().data();
    hot.feeds = setup.feeds_through;
    hot.stop = -never;
    const auto count = [](const std::vector<Group>& groups) {
        return groups.empty() ? 0 : groups[0].references.size();
    };
    const std::size_t inputs = count(setup.set), outputs = count(setup.get);
    const bool quick =
        phase_ == Phase::stepping && settled() && plain() && !trial() && lent_.empty() && !ended_;
    if (!quick || std::max(inputs, outputs) > 0xffff) return;
    hot.stop = experiment_.stops ? experiment_.stop : never;
    if (hot.out) return;
    hot.inputs = static_cast<std::uint16_t>(inputs);
    hot.outputs = static_cast<std::uint16_t>(outputs);
    hot.in = inputs ? setup.set[0].references.data() : nullptr;
    hot.out = setup.get[0].references.data();
    if (inputs + outputs > std::size(hot.kept)) return;
    std::copy_n(hot.out, outputs, std::copy_n(hot.in, inputs, hot.kept));
    hot.in = hot.kept;
    hot.out = hot.kept + inputs;
}

// problems

bool Fmu::wrong(std::string what, std::string remedy) {
    hot_.stop = -never;
    spoke_ = false;
    problem_ = std::move(what);
    remedy_ = std::move(remedy);
    failure_ = {};
    failure_.kind = Failure::Kind::reported;
    return false;
}

bool Fmu::report_failure(Call call, std::int64_t tick, std::int64_t ticks) {
    failure_.call = call;
    failure_.tick = tick;
    failure_.ticks = ticks;
    return false;
}

void Fmu::note_stop(double reached) {
    wrong("the step was not finished");
    spoke_ = true;
    failure_.kind = Failure::Kind::stopped_early;
    failure_.value = reached;
}

void Fmu::set_ended(bool ended) {
    if (ended == ended_) return;
    ended_ = ended;
    hot_.stop = -never;
    end_requests.now += ended ? 1 : -1;
    if (ended) ++end_requests.ever;
}

bool Fmu::end_inside(double reached) {
    set_ended(true);
    wrong("it asks to end the simulation");
    failure_.kind = Failure::Kind::ended;
    failure_.value = reached;
    return false;
}

// It asks to end the simulation at a time in its step. A level that handles early returns makes the step
// again up to there; else a step that is not whole fails.
Fmu::Reach Fmu::end_at(double t, double h, double reached) {
    const double end = t + h, least = 1e-12 * std::max(std::fabs(end), h);
    if (reached >= end - least) return set_ended(true), Reach::whole;
    if (setup.early && reached > t + least) return Reach::early;
    return end_inside(reached), Reach::failed;
}

bool Fmu::good(fmi::Status status, const char* function) {
    if (status <= fmi::warning) [[likely]]
        return true;
    static const char* names[] = {"OK", "Warning", "Discard", "Error", "Fatal", "Pending"};
    if (status >= fmi::error && status != fmi::pending)
        phase_ = status == fmi::fatal ? Phase::lost : Phase::terminated;
    const bool known = status >= 0 && status <= fmi::pending;
    wrong(std::string(function) + " returned " + (known ? names[status] : std::to_string(status).c_str()));
    spoke_ = true;
    return false;
}

// the life of an instance

bool Fmu::instantiate() {
    std::lock_guard turn(library_->turn());
    close();
    set_ended(false);
    forget_complaints(setup.name);
    problem_.clear();
    remedy_.clear();
    failure_ = {};
    newest_ = nullptr;
    next_event_ = never;
    forget();
    std::fill(known_.begin(), known_.end(), std::nan(""));
    ++life_;
    guard_thread();
    callee_.handle = instance_ = create();
    if (!instance_) {
        wrong("it cannot be instantiated");
        spoke_ = true;
        return false;
    }
    phase_ = Phase::instantiated;
    return true;
}

bool Fmu::configure(bool) { return wrong("it has no structural parameters"); }

bool Fmu::put(Type type, const std::vector<fmi::Reference>& references, const std::vector<double>& values) {
    Group group{type, references, {}};
    for (std::size_t k = 0; k < values.size(); ++k) group.places.push_back(static_cast<int>(k));
    return set_group(group, values.data());
}

bool Fmu::put_whole(Type type, const std::vector<fmi::Reference>& references,
                    const std::vector<std::int64_t>& values) {
    return set_whole(type, references, values);
}

bool Fmu::put_texts(const std::vector<fmi::Reference>& references, const std::vector<std::string>& values,
                    bool binary) {
    return write_texts(references.data(), references.size(), values.data(), binary);
}

bool Fmu::prepare(const Experiment& experiment) {
    std::lock_guard turn(library_->turn());
    experiment_ = experiment;
    watched_ = experiment.stops && !exchange_ && setup.outputs > 0 ? 0 : 3;
    ended_at_ = experiment.t;
    shown_.clear();
    return set_up();
}

bool Fmu::begin() {
    std::lock_guard turn(library_->turn());
    if (!enter_initialisation()) return false;
    phase_ = Phase::initialising;
    return true;
}

bool Fmu::ready() {
    if (phase_ == Phase::stepping) [[likely]]
        return true;
    std::lock_guard turn(library_->turn());
    if (phase_ != Phase::initialising) return problem_.empty() ? wrong("it has not been started") : false;
    if (!leave_initialisation()) return false;
    phase_ = Phase::stepping;
    return !exchange_ || exchange_->begin();
}

void Fmu::close() {
    hot_.stop = -never;
    if (!instance_) return;
    std::lock_guard turn(library_->turn());
    if (phase_ != Phase::lost) {
        for (Saved* saved : lent_) free_state(&saved->state);
        for (fmi::State& state : spare_) free_state(&state);
        if (phase_ == Phase::stepping) terminate();
        if (phase_ != Phase::lost) destroy();
    }
    lent_.clear();
    spare_.clear();
    set_ended(false);
    callee_.handle = instance_ = nullptr;
    phase_ = Phase::none;
}

// values

bool Fmu::set_groups(const double* u) {
    for (const Group& group : setup.set)
        if (!set_group(group, u)) return false;
    std::copy(u, u + setup.inputs, known_.begin());
    return true;
}

bool Fmu::get_groups(double* y) {
    for (const Group& group : setup.get)
        if (!get_group(group, y)) return false;
    return true;
}

bool Fmu::take(Type type, const std::vector<fmi::Reference>& references, std::vector<double>& values) {
    Group group{type, references, std::vector<int>(values.size())};
    std::iota(group.places.begin(), group.places.end(), 0);
    return get_group(group, values.data());
}

bool Fmu::set_inputs(const double* u) { return setup.inputs == 0 || set_groups(u); }

bool Fmu::evaluate(const double* u, double* y) {
    if (setup.feeds_through && !std::equal(known_.begin(), known_.end(), u) && !set_inputs(u)) return false;
    return get_groups(y);
}

bool Fmu::finite(const double* y) {
    double sum = 0.0;
    for (int k = 0; k < setup.outputs; ++k) sum += y[k] - y[k];
    if (sum == 0.0) [[likely]]
        return true;
    failure_ = {};  // the level looks at the outputs itself
    problem_.clear();
    return false;
}

// stepping

bool Fmu::step(const Span& span, const double* u) {
    const bool goes_on = ready() && (!ended_ || end_inside(span.t));
    return (goes_on && try_step(span.t, span.h, u)) || report_failure(Call::step, span.tick, span.ticks);
}

double Fmu::within_stop(double t, double h) const {
    const double stop = experiment_.stop, end = t + h;
    if (!experiment_.stops || end == stop) return h;
    const double rounding =
        4.0 * std::numeric_limits<double>::epsilon() * std::max(std::fabs(t), std::fabs(stop));
    if (!(std::fabs(end - stop) <= std::min(rounding, 0.5 * h))) return h;
    double length = stop - t;
    while (t + length > stop) length = std::nextafter(length, 0.0);
    return length;
}

Fmu::Reach Fmu::judge_reach(Reach reach, double reached, double t, double h) {
    const double end = t + h;
    const bool there = std::fabs(reached - end) <= 1e-12 * std::max(std::fabs(end), h);
    return reach == Reach::early && there ? Reach::whole : reach;
}

Fmu::Reach Fmu::move(double t, double h, const double* u, double* reached) {
    const double length = within_stop(t, h);
    if (exchange_) return exchange_->advance(t, length, u) ? Reach::whole : Reach::failed;
    if (!set_inputs(u)) return Reach::failed;
    const Reach reach = advance(t, length, u, reached);
    // inputs that moved during the step are where the FMU left them
    for (int place = setup.inputs; place < rows_ * setup.inputs; ++place)
        if (u[place] != 0.0) known_[place % setup.inputs] = std::nan("");
    return judge_reach(reach, *reached, t, length);
}

bool Fmu::try_step(double t, double h, const double* u) {
    double reached = t;
    const Reach reach = move(t, h, u, &reached);
    if (reach == Reach::failed) return false;
    if (reach == Reach::early) {
        note_stop(reached);
        return false;
    }
    if (watched_ < 2 && t > ended_at_ - 1e-6 * h) {  // not a step that is made again
        ++watched_;
        ended_at_ = t + h;
        least_ = 1e-6 * h;
    }
    if (!trial()) return true;
    TrialStep& made = *newest_->trial;
    newest_ = nullptr;
    made.made = true;
    made.t = t;
    made.h = h;
    made.rows = rows_;
    made.u.assign(u, u + static_cast<std::size_t>(rows_) * setup.inputs);
    made.after.resize(setup.outputs);
    return get_groups(made.after.data());
}

// Some FMUs go to the stop time in their first step, if they are told one. What moved in the first step and
// not in the second may be at rest: its own time decides.
bool Fmu::watch(const double* y) {
    const int made = watched_;
    if (made < 2) {
        (made == 0 ? shown_ : after_).assign(y, y + setup.outputs);
        return true;
    }
    watched_ = 3;
    const bool still = std::equal(after_.begin(), after_.end(), y, y + setup.outputs);
    if (!still || shown_.empty() || after_ == shown_) return true;
    const double stop = experiment_.stop, now = own_time();
    if (stop < ended_at_ + least_ || !(std::fabs(now - stop) < least_)) return true;
    return wrong("it goes to the stop time in its first step: its own time is " + written(now) +
                     " s after a step to t = " + written(ended_at_) + " s",
                 "`stop_time = false`: it is not told when the run ends (`Fmu(..., stop_time=False)`, "
                 "`--no-stop-time`)");
}

// The time that it has itself: its independent variable, else what it tells; not a number: neither.
double Fmu::own_time() {
    std::vector<double> told(setup.time.size());
    const Phase phase = phase_;
    if (!told.empty() && take(Type::real, setup.time, told)) return told[0];
    phase_ = phase;
    return last_time();
}

bool Fmu::output(std::int64_t tick, const double* u, double* y) {
    bool done = false;
    if (phase_ == Phase::initialising && !at_once_)
        done = set_inputs(u) && get_groups(y);
    else if (phase_ == Phase::initialising)
        done = set_inputs(u) && ready() && get_groups(y);
    else
        done = ready() && (exchange_ ? exchange_->evaluate(u, y) : evaluate(u, y));
    done = done && (settled() || watch(y));
    return (done && finite(y)) || report_failure(Call::output, tick);
}

bool Fmu::slope(std::int64_t tick, const double*, double* dy) {
    if (!ready()) return report_failure(Call::slope, tick);
    for (const Group& group : setup.get) {
        room_.resize(group.places.size());
        if (!get_slopes(group, room_.data())) return report_failure(Call::slope, tick);
        for (std::size_t k = 0; k < room_.size(); ++k) dy[group.places[k]] = room_[k];
    }
    return true;
}

// state

bool Fmu::save(Saved& saved) {
    hot_.stop = -never;
    if (!ready()) return false;
    if (!can_save()) return wrong("it cannot save its state");
    if (!unsaved_.empty()) return wrong(unsaved_, otherwise);
    release(saved);
    saved.state = nullptr;
    if (!spare_.empty()) {
        saved.state = spare_.back();
        spare_.pop_back();
    }
    saved.life = life_;
    const bool got = good(get_state(&saved.state), "getting the FMU state");
    if (saved.state) lent_.push_back(&saved);
    if (!got) return false;
    if (!saved.state)
        return wrong(
            "it says that it can save its state, but hands out none: the call returns OK and the state is "
            "NULL",
            otherwise);
    saved.known = known_;
    saved.next_event = next_event_;
    saved.ended = ended_;
    if (exchange_) exchange_->keep(saved.solution);
    saved.time = std::nan("");
    newest_ = nullptr;
    if (proven_ && restores_ + 1 < check_at_) return true;
    if (trials_.empty()) trials_.push_back(std::make_unique<TrialStep>());
    saved.trial = std::move(trials_.back());
    trials_.pop_back();
    saved.trial->made = false;
    saved.trial->before.resize(setup.outputs);
    newest_ = &saved;
    return get_groups(saved.trial->before.data());
}

bool Fmu::is_final(double t, double h) {
    const double least = 1e-9 * std::max(std::fabs(t), h);
    bool final = true;
    for (Saved* saved : lent_) {
        if (std::isnan(saved->time)) saved->time = t;
        final = final && saved->time > t - least;
    }
    return final;
}

bool Fmu::restore(Saved& saved) {
    if (saved.life != life_ || std::find(lent_.begin(), lent_.end(), &saved) == lent_.end())
        return wrong("the state was saved before its last start, and is gone");
    // as long as nothing moved a rewind that does nothing cannot be told from one that works
    const bool due = ++restores_ >= check_at_, made = saved.trial && saved.trial->made;
    const bool moved = made && saved.trial->moved(), tried = made && (due || (moved && !proven_));
    std::vector<double> last(tried ? setup.outputs : 0);
    if (tried && phase_ == Phase::stepping && !get_groups(last.data())) return false;
    if (!recall(saved)) return false;
    if (!tried) return true;
    if (!repeat(*saved.trial, last)) return false;
    check_at_ = 2 * restores_;
    proven_ = proven_ || moved;
    return recall(saved);
}

// The first step from a state that was just restored, made again: it must end as it did. `last` are the
// outputs before it was restored.
bool Fmu::repeat(TrialStep& step, const std::vector<double>& last) {
    const std::string claim = "it says that it can save and restore its state, but ";
    const std::string same = "the same step from t = " + written(step.t) + " s ";
    std::vector<double> restored(step.after.size()), again(step.after.size());
    double reached = step.t;
    if (!get_groups(restored.data())) return false;
    std::swap(rows_, step.rows);
    const Reach reach = move(step.t, step.h, step.u.data(), &reached);
    std::swap(rows_, step.rows);
    if (reach == Reach::early)
        return wrong(claim + same + "was whole before and stops at " + written(reached) +
                         " s after the state was restored",
                     otherwise);
    if (reach == Reach::failed || !get_groups(again.data())) return false;
    for (std::size_t k = 0; k < again.size(); ++k) {
        if (!differ(again[k], step.after[k])) continue;
        const std::string number = "output number " + std::to_string(k + 1);
        const std::string ends = same + "ended at " + written(step.after[k]) + " before and at " +
                                 written(again[k]) + " after the state was restored";
        if (restored == last && restored != step.before)
            return wrong(claim + "restoring does nothing, " + number + " stays at " + written(restored[k]) +
                             ": " + ends,
                         otherwise);
        return wrong(claim + ends + ", " + number, otherwise);
    }
    return true;
}

bool Fmu::recall(Saved& saved) {
    if (!good(set_state(saved.state), "setting the FMU state")) return false;
    if (phase_ == Phase::terminated) phase_ = Phase::stepping;
    known_ = saved.known;
    next_event_ = saved.next_event;
    set_ended(saved.ended);
    forget();
    if (exchange_) exchange_->recall(saved.solution);
    newest_ = saved.trial && !saved.trial->made ? &saved : nullptr;
    return true;
}

void Fmu::release(Saved& saved) {
    if (newest_ == &saved) newest_ = nullptr;
    if (saved.trial && trials_.size() < 4) trials_.push_back(std::move(saved.trial));
    saved.trial.reset();
    const auto found = std::find(lent_.begin(), lent_.end(), &saved);
    if (saved.life != life_ || found == lent_.end()) return;  // freed with its instance
    lent_.erase(found);
    if (spare_.size() < 4)
        spare_.push_back(saved.state);
    else
        free_state(&saved.state);
}

// Within a run its level outlives what it keeps of it.
bool Fmu::save(Snapshot& to) {
    if (!to.of_its_own)
        to.of_its_own = std::make_shared<Saved>(std::shared_ptr<Fmu>(std::shared_ptr<Fmu>{}, this));
    return save(*static_cast<Saved*>(to.of_its_own.get())) || report_failure(Call::save, 0);
}

bool Fmu::restore(Snapshot& from) {
    return restore(*static_cast<Saved*>(from.of_its_own.get())) || report_failure(Call::restore, 0);
}

// the slow lane

bool Fmu::set_text(int port, const std::string& value) {
    const bool event = exchange_ && phase_ == Phase::stepping;
    return (event ? exchange_->set_text(port, value) : put_text(port, value)) ||
           report_failure(Call::step, 0);
}

bool Fmu::put_text(int port, const std::string& value) {
    return write_texts(&setup.texts_in[port], 1, &value, setup.binary_in[port]);
}

bool Fmu::get_text(int port, std::string& value) {
    if (!instance_ || port < 0 || port >= static_cast<int>(setup.texts_out.size()))
        return wrong("there is no such text to get");
    return read_text(setup.texts_out[port], setup.binary_out[port], value) || report_failure(Call::output, 0);
}

}  // namespace hocket
