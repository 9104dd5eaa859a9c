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
    if (groups.size() != 1 || groups[0].type != Type::real || groups[0].negated) return false;
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
      callee_(setup.name.c_str(), setup.file.c_str(), setup.crash_file.c_str(), &hot_.stage, stages),
      clocks_(setup.clocks) {
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
        phase_ == Phase::stepping && settled() && plain() && !trial() && lent_.empty() && !ended_ && !rests();
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
    rest_ = {};
    next_event_ = never;
    pending_ = in_events_ = reacting_ = stale_ = false;
    own_ = std::nan("");
    closed_in_.clear();
    closed_out_.clear();
    last_.clear();
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

bool Fmu::directional(const std::vector<fmi::Reference>& unknowns, const std::vector<fmi::Reference>& knowns,
                      const std::vector<double>& seed, std::vector<double>& result) {
    if (!directional_) return wrong("its binary has no function for directional derivatives");
    const fmi::Status status = directional_(instance_, unknowns, knowns, seed, result);
    // an FMU that does not give them is not ended by that
    if (status == fmi::discard || status == fmi::error)
        return wrong(std::string(directional_.name()) + " failed");
    return good(status, directional_.name());
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
    watched_ = !exchange_ && setup.outputs > 0 ? 0 : first_steps + 1;
    ended_at_ = experiment.t;
    first_ = {};
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
    for (const Group& group : setup.set) {
        const Group& open = closed_in_.empty() ? group : open_part(group, closed_in_);
        if (!open.references.empty() && !set_group(open, u)) return false;
    }
    std::copy(u, u + setup.inputs, known_.begin());
    return true;
}

bool Fmu::get_groups(double* y) {
    if (closed_out_.empty() && clocks_.empty()) [[likely]] {
        for (const Group& group : setup.get)
            if (!get_group(group, y)) return false;
        return true;
    }
    last_.resize(static_cast<std::size_t>(setup.outputs), 1.0);  // what a clock shows when it ticks
    for (const Group& group : setup.get) {
        const Group& open = closed_out_.empty() ? group : open_part(group, closed_out_);
        if (!open.references.empty() && !get_group(open, last_.data())) return false;
    }
    std::copy(last_.begin(), last_.end(), y);
    return true;
}

// Of a call, what may be set or got now; arrays are not clocked.
const Group& Fmu::open_part(const Group& group, const std::vector<std::uint8_t>& closed) {
    if (group.references.size() != group.places.size()) return group;
    part_.type = group.type;
    part_.references.clear();
    part_.places.clear();
    for (std::size_t k = 0; k < group.places.size(); ++k) {
        if (closed[group.places[k]]) continue;
        part_.references.push_back(group.references[k]);
        part_.places.push_back(group.places[k]);
    }
    return part_;
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

double Fmu::slack(double t, double h) const {
    if (setup.grid == 0.0) return 0.0;
    const double rounding = 8.0 * std::numeric_limits<double>::epsilon() * std::fabs(t + h);
    return std::max(setup.grid, 1.001e-9 * h + rounding);
}

Fmu::Reach Fmu::move(double t, double h, const double* u, double* reached) {
    const double length = within_stop(t, h);
    if (exchange_) {
        *reached = t + length;
        if (!exchange_->advance(t, length, u, reached)) return Reach::failed;
        return std::isnan(own_) || *reached == t + length ? Reach::whole : Reach::early;
    }
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
    if (watched_ < first_steps && t > ended_at_ - 1e-6 * h) {  // not a step that is made again
        if (++watched_ == 1) first_.t = t, first_.h = h;
        ended_at_ = t + h;
        least_ = 1e-6 * h;
    }
    if (rest_.watched) rest_.stepped = true, rest_.h = h;
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
bool Fmu::watch(const double* u, const double* y) {
    const std::size_t made = watched_;
    first_.y.resize(made + 1);
    first_.u.resize(made + 1);
    first_.y[made].assign(y, y + setup.outputs);
    first_.u[made].assign(u, u + setup.inputs);
    if (watched_ == first_steps) ++watched_;
    if (made != 2 || !experiment_.stops || first_.y[0].empty()) return true;
    if (first_.y[1] == first_.y[0] || first_.y[1] != first_.y[2]) return true;
    const double stop = experiment_.stop, now = own_time();
    if (stop < ended_at_ + least_ || !(std::fabs(now - stop) < least_)) return true;
    return wrong("it goes to the stop time in its first step: its own time is " + written(now) +
                     " s after a step to t = " + written(ended_at_) + " s",
                 "`stop_time = false`: it is not told when the run ends (`Fmu(..., stop_time=False)`, "
                 "`--no-stop-time`)");
}

bool Fmu::begins_smoothly(double ratio) const {
    if (!first_rows()) return false;
    const std::vector<std::vector<double>>& y = first_.y;
    if (y.size() < 3) return true;
    const std::size_t outputs = std::min({y[0].size(), y[1].size(), y[2].size()});
    for (std::size_t k = 0; k < outputs; ++k)
        if (std::fabs(y[1][k] - y[0][k]) > ratio * std::fabs(y[2][k] - y[1][k])) return false;
    return true;
}

// Whether anything has moved since the first save. Direct feedthrough moves outputs of what stands still:
// they are evaluated again under the inputs of the save, now and then.
bool Fmu::watch_rest(const double* u, const double* y) {
    Rest& rest = rest_;
    rest.stepped = false;
    if (!rest.moved && !std::equal(rest.y.begin(), rest.y.end(), y)) {
        const bool alike = !setup.feeds_through || std::equal(rest.u.begin(), rest.u.end(), u);
        const bool known =
            std::none_of(rest.u.begin(), rest.u.end(), [](double one) { return std::isnan(one); });
        if (alike || !known || setup.events || !setup.discrete.empty()) {
            rest.moved = true;
        } else if ((rest.still & (rest.still + 1)) == 0) {
            rest.tried.resize(setup.outputs);
            if (!evaluate(rest.u.data(), rest.tried.data())) return false;
            rest.moved = rest.tried != rest.y;
            if (!evaluate(u, rest.tried.data())) return false;
        }
    }
    if (!rest.moved) ++rest.still;
    if (rest.behind && !rest.last.empty()) {
        const bool still = std::equal(rest.last.begin(), rest.last.end(), y);
        rest.still_behind += still;
        rest.moved_behind = rest.moved_behind || !still;
    }
    rest.last.assign(y, y + setup.outputs);
    return true;
}

std::optional<Fmu::Doubt> Fmu::doubts_saving() {
    Rest& rest = rest_;
    const int still = !rest.moved ? rest.still : !rest.moved_behind ? rest.still_behind : 0;
    if (!rest.watched || rest.trusted || still < rest.doubt_at) return std::nullopt;
    rest.doubt_at = 4 * still;
    return Doubt{known_, rest.h, rest.moved};
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
    done = done && (settled() || watch(u, y)) && (!rest_.stepped || watch_rest(u, y));
    return (done && finite(y)) || report_failure(Call::output, tick);
}

bool Fmu::slope(std::int64_t tick, const double*, double* dy) {
    if (!ready()) return report_failure(Call::slope, tick);
    std::fill(dy, dy + setup.outputs, 0.0);
    for (const Group& group : setup.sloped) {
        room_.resize(group.places.size());
        if (!get_slopes(group, room_.data())) return report_failure(Call::slope, tick);
        for (std::size_t k = 0; k < room_.size(); ++k) dy[group.places[k]] = group.turn(room_[k]);
    }
    return true;
}

// instants

double Fmu::due_time() const {
    if (pending_) return experiment_.t;  // now: not after any time
    const double told = exchange_ ? exchange_->next_event() : next_event_;
    return clocks_.empty() ? told : std::min(told, clocks_.due());
}

bool Fmu::due(std::int64_t& tick) {
    tick = clock_.event_tick(due_time(), true);
    return true;
}

bool Fmu::react(std::int64_t tick, int n, const double* u, const std::uint8_t* present, std::uint8_t* shown) {
    return react_at(clock_.time(tick), n, u, present, shown) || report_failure(Call::react, tick);
}

bool Fmu::react_at(double t, int, const double* u, const std::uint8_t* present, std::uint8_t* shown) {
    hot_.stop = -never;
    reacting_ = true;
    return ready() && (exchange_ ? exchange_->react(t, u, present, shown) : react_now(t, u, present, shown));
}

bool Fmu::commit(bool& again) {
    again = false;
    const bool done = exchange_ ? exchange_->commit(again) : update_now(again);
    reacting_ = again;
    return done || report_failure(Call::commit, 0);
}

bool Fmu::react_now(double, const double*, const std::uint8_t*, std::uint8_t*) {
    return wrong("it has no event mode");
}

bool Fmu::update_now(bool&) { return wrong("it has no event mode"); }

// state

bool Fmu::save(Saved& saved) {
    hot_.stop = -never;
    if (!ready()) return false;
    if (!can_save()) return wrong("it cannot save its state");
    if (!unsaved_.empty()) return wrong(unsaved_, otherwise);
    if (in_events_ && !pending_ && !(exchange_ ? exchange_->leave_instants() : leave_instants()))
        return false;
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
    saved.own = own_;
    saved.pending = pending_;
    saved.in_events = in_events_;
    saved.stale = stale_;
    saved.clocks = clocks_.state;
    saved.closed_in = closed_in_;
    saved.closed_out = closed_out_;
    saved.last = last_;
    saved.texts_in = texts_in_;
    saved.texts_out = texts_out_;
    saved.ended = ended_;
    if (exchange_) exchange_->keep(saved.solution);
    if (!exchange_ && !rest_.watched) {
        rest_.watched = true;
        rest_.u = known_;
        rest_.y.resize(setup.outputs);
        if (!get_groups(rest_.y.data())) return false;
    }
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
    rest_.behind = !final;
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
    own_ = saved.own;
    pending_ = saved.pending;
    in_events_ = saved.in_events;
    reacting_ = false;
    stale_ = saved.stale;
    clocks_.state = saved.clocks;
    closed_in_ = saved.closed_in;
    closed_out_ = saved.closed_out;
    last_ = saved.last;
    texts_in_ = saved.texts_in;
    texts_out_ = saved.texts_out;
    set_ended(saved.ended);
    forget();
    rest_.last.clear();
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
    if (to.portable) {
        Saved saved(std::shared_ptr<Fmu>(std::shared_ptr<Fmu>{}, this));
        return (save(saved) && dump(saved, true, to.bytes)) || report_failure(Call::save, 0);
    }
    if (!to.of_its_own)
        to.of_its_own = std::make_shared<Saved>(std::shared_ptr<Fmu>(std::shared_ptr<Fmu>{}, this));
    return save(*static_cast<Saved*>(to.of_its_own.get())) || report_failure(Call::save, 0);
}

bool Fmu::restore(Snapshot& from) {
    if (from.portable) return load(from.bytes) || report_failure(Call::restore, 0);
    return restore(*static_cast<Saved*>(from.of_its_own.get())) || report_failure(Call::restore, 0);
}

// the slow lane

bool Fmu::set_text(int port, const std::string& value) {
    const bool event = exchange_ && phase_ == Phase::stepping && !is_clocked(setup.clocked_texts_in, port);
    return (event ? exchange_->set_text(port, value) : put_text(port, value)) ||
           report_failure(Call::step, 0);
}

bool Fmu::put_text(int port, const std::string& value) {
    return write_texts(&setup.texts_in[port], 1, &value, setup.binary_in[port]);
}

bool Fmu::get_text(int port, std::string& value) {
    if (!instance_ || port < 0 || port >= static_cast<int>(setup.texts_out.size()))
        return wrong("there is no such text to get");
    if (is_clocked(setup.clocked_texts_out, port)) {
        value = port < static_cast<int>(texts_out_.size()) ? texts_out_[port] : "";
        return true;
    }
    return read_text(setup.texts_out[port], setup.binary_out[port], value) || report_failure(Call::output, 0);
}

}  // namespace hocket
