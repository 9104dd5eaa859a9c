#include "engine/state_space.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/dense.hpp"
#include "engine/level_state.hpp"
#include "engine/polynomial.hpp"
#include "engine/watch.hpp"

namespace hocket {

namespace {

// total = matrix x + second u for few rows, without a pass over memory per column.
[[gnu::always_inline]] inline void short_sums(double* total, int rows, const double* one, const double* x,
                                              int n, const double* two, const double* u, int m) {
    for (int i = 0; i < rows; ++i) {
        double sum = 0.0;
        for (int j = 0; j < n; ++j) sum = sum + one[j * rows + i] * x[j];
        for (int j = 0; j < m; ++j) sum = sum + two[j * rows + i] * u[j];
        total[i] = sum;
    }
}

// Any size, any inputs, micro steps and histories.
class StateSpace final : public Simulator {
  public:
    StateSpace(const Linear& model, const std::vector<double>& z, double last,
               std::unique_ptr<MicroRows> micro)
        : model_(&model), length_(model.lengths.front().get()), last_(last), micro_(std::move(micro)) {
        z_.resize(2 * static_cast<std::size_t>(model.states));  // the second half is room for the next state
        std::copy(z.begin(), z.end(), z_.begin());
    }

    bool uses_seconds() const override { return false; }
    bool needs_python() const override { return static_cast<bool>(model_->ask); }

    bool prepare(std::int64_t ticks) override { return model_->provide(ticks); }

    bool step(const Span& span, const double* u) override {
        const Linear& m = *model_;
        if (span.ticks != length_->ticks) {
            const Length* other = m.find(span.ticks);
            if (!other) return false;
            length_ = other;
        }
        if (length_->count == 1 && !m.multistep && !micro_) [[likely]]
            advance(length_->maps, u);
        else
            return micro_steps(span.tick, u);
        return true;
    }

    bool output(std::int64_t, const double* u, double* y) override {
        outputs(u, y);
        return true;
    }

    bool slope(std::int64_t, const double* u, double* dy) override {
        const Linear& m = *model_;
        std::vector<double>& rate = rates();
        std::fill(rate.begin(), rate.end(), 0.0);
        add(rate.data(), m.A.data(), z_.data(), m.size, m.size);
        add(rate.data(), m.B.data(), u, m.size, m.inputs);
        std::fill(dy, dy + m.outputs, 0.0);
        add(dy, m.C.data(), rate.data(), m.outputs, m.size);
        if (m.rows > 1) add(dy, m.D.data(), u + m.inputs, m.outputs, m.inputs);
        return true;
    }

    double* state() override { return z_.data(); }
    bool save(Snapshot& to) override {
        to.begin();
        to.keep(z_.data(), model_->states);
        to.keep(last_);
        if (micro_ && !to.portable) micro_->rows->save(to);
        return true;
    }
    bool restore(Snapshot& from) override {
        from.rewind();
        from.take(z_.data(), model_->states);
        from.take(last_);
        if (micro_ && !from.portable) micro_->rows->restore(from);
        return true;
    }
    void settle_rows(const Snapshot* restorable, bool) override {
        if (micro_) micro_->rows->final = restorable ? restorable->rows : micro_->rows->size();
    }
    void set_watch(Watch* watch) override { watch_ = watch; }

  private:
    void advance(const Maps& maps, const double* c) {
        const Linear& m = *model_;
        const int terms = m.inputs * m.rows;
        double* next = z_.data() + m.states;
        if (m.states <= 4) {
            short_sums(next, m.states, maps.Phi.data(), z_.data(), m.states, maps.Gamma.data(), c, terms);
        } else {
            std::fill(next, next + m.states, 0.0);
            add(next, maps.Phi.data(), z_.data(), m.states, m.states);
            add(next, maps.Gamma.data(), c, m.states, terms);
        }
        std::copy_n(next, m.states, z_.data());  // not memcpy: without states both are null
    }

    void outputs(const double* u, double* y) const {
        const Linear& m = *model_;
        if (m.outputs <= 4) {
            const int driven = m.feeds_through ? m.inputs : 0;
            short_sums(y, m.outputs, m.C.data(), z_.data(), m.size, m.D.data(), u, driven);
            return;
        }
        std::fill(y, y + m.outputs, 0.0);
        add(y, m.C.data(), z_.data(), m.outputs, m.size);
        if (m.feeds_through) add(y, m.D.data(), u, m.outputs, m.inputs);
    }

    bool micro_steps(std::int64_t tick, const double* u) {
        const Linear& m = *model_;
        const Length& l = *length_;
        const std::size_t terms = static_cast<std::size_t>(m.rows) * m.inputs;
        for (std::int64_t k = 0; k < l.count; ++k) {
            if (watch_ && !watch_->go_on()) return false;
            const double* c = u;
            if (k > 0 && m.rows > 1) {
                if (!moved_) moved_ = std::make_unique<double[]>(terms);
                std::copy_n(u, terms, moved_.get());  // not memcpy: without inputs both are null
                const double since = static_cast<double>(k) * l.length;
                for (int j = 0; j < m.inputs; ++j) shift(moved_.get() + j, m.rows, m.inputs, since);
                c = moved_.get();
            }
            advance(m.multistep && last_ != l.length ? l.first : l.maps, c);
            last_ = l.length;
            if (micro_) keep(tick, u, k + 1 == l.count ? l.h : static_cast<double>(k + 1) * l.length);
        }
        return true;
    }

    void keep(std::int64_t tick, const double* u, double end) {
        const Linear& m = *model_;
        micro_->values.resize(static_cast<std::size_t>(m.inputs) + m.outputs);
        double* at = micro_->values.data();
        for (int j = 0; j < m.inputs; ++j) at[j] = value_at(u + j, m.rows, m.inputs, end);
        outputs(at, at + m.inputs);
        micro_->rows->data.push_back(micro_->clock->time(tick) + end);
        for (int port : micro_->ports) micro_->rows->data.push_back(at[m.inputs + port]);
    }

    std::vector<double>& rates() {
        if (!rate_) rate_ = std::make_unique<std::vector<double>>(model_->size);
        return *rate_;
    }

    const Linear* model_;
    const Length* length_;  // of the newest step
    std::vector<double> z_;
    double last_;  // the newest micro step; 0: there was none
    std::unique_ptr<MicroRows> micro_;
    Watch* watch_ = nullptr;
    std::unique_ptr<double[]> moved_;  // polynomials seen from a micro step
    std::unique_ptr<std::vector<double>> rate_;
};

// N states, M inputs that are held, P outputs, and whether they follow the inputs (F), all known to the
// compiler; everything a step touches lies together, the maps of one length among it: those of the steps that
// are made one after another.
template <int N, int M, int P, bool F> class alignas(64) Small final : public Simulator {
  public:
    Small(const Linear& model, const std::vector<double>& z) : model_(&model) {
        take(*model.lengths.front());
        std::copy(z.begin(), z.end(), z_.begin());
        std::copy(model.C.begin(), model.C.end(), C_.begin());
        std::copy(model.D.begin(), model.D.end(), D_.begin());
    }
    bool checks_itself() const override { return true; }
    bool uses_seconds() const override { return false; }
    bool needs_python() const override { return static_cast<bool>(model_->ask); }
    bool prepare(std::int64_t ticks) override { return model_->provide(ticks); }

    bool step(const Span& span, const double* u) override {
        if (span.ticks != ticks_) [[unlikely]]
            if (!change_length(span.ticks)) return false;
        std::array<double, N> next;
        short_sums(next.data(), N, Phi_.data(), z_.data(), N, Gamma_.data(), u, M);
        z_ = next;
        return true;
    }
    bool output(std::int64_t, const double* u, double* y) override {
        short_sums(y, P, C_.data(), z_.data(), N, D_.data(), u, F ? M : 0);
        double finite = y[0] - y[0];
        for (int i = 1; i < P; ++i) finite = finite + (y[i] - y[i]);
        return finite == 0.0;
    }
    StepOutput step_output() const override {
        return [](Simulator& self, const Span& span, const double* u, double* y) {
            Small& small = static_cast<Small&>(self);
            return small.Small::step(span, u) && small.Small::output(span.tick, u, y);
        };
    }
    StepRun step_run() const override {
        return [](Slot* slot, Slot* last, const Span& span, const double* u, double* y) -> RunEnd {
            const std::int64_t tick = span.tick, after = span.tick + span.ticks;
            for (; slot != last && slot->tick == tick; ++slot) {
                Small& small = static_cast<Small&>(*slot->simulator);
                slot->tick = after;
                if (!small.Small::step(span, u + slot->u) ||
                    !small.Small::output(tick, u + slot->u, y + slot->y)) [[unlikely]]
                    return {slot, false};
            }
            return {slot, true};
        };
    }
    bool slope(std::int64_t, const double* u, double* dy) override {
        std::array<double, N> rate;
        short_sums(rate.data(), N, model_->A.data(), z_.data(), N, model_->B.data(), u, M);
        short_sums(dy, P, C_.data(), rate.data(), N, D_.data(), u, 0);
        return true;
    }
    double* state() override { return z_.data(); }
    bool save(Snapshot& to) override {
        to.begin();
        to.keep(z_.data(), N);
        return true;
    }
    bool restore(Snapshot& from) override {
        from.rewind();
        from.take(z_.data(), N);
        return true;
    }

  private:
    void take(const Length& length) {
        ticks_ = length.ticks;
        std::copy(length.maps.Phi.begin(), length.maps.Phi.end(), Phi_.begin());
        std::copy(length.maps.Gamma.begin(), length.maps.Gamma.end(), Gamma_.begin());
    }
    [[gnu::noinline, gnu::cold]] bool change_length(std::int64_t ticks) {
        const Length* other = model_->find(ticks);
        if (!other || other->count != 1) return false;
        take(*other);
        return true;
    }

    std::int64_t ticks_;
    std::array<double, N> z_;
    std::array<double, N * N> Phi_;
    std::array<double, N * M> Gamma_;
    std::array<double, P * N> C_;
    std::array<double, P * M> D_;
    const Linear* model_;
};

constexpr int small = 3;

// The Small of a model's size: sizes are counted down until they fit.
template <int N = small, int M = small, int P = small>
std::unique_ptr<Simulator> fitting(const Linear& model, const std::vector<double>& z) {
    if constexpr (N > 1)
        if (model.states < N) return fitting<N - 1, M, P>(model, z);
    if constexpr (M > 0)
        if (model.inputs < M) return fitting<N, M - 1, P>(model, z);
    if constexpr (P > 1)
        if (model.outputs < P) return fitting<N, M, P - 1>(model, z);
    if constexpr (M > 0)
        if (model.feeds_through) return std::make_unique<Small<N, M, P, true>>(model, z);
    return std::make_unique<Small<N, M, P, false>>(model, z);
}

}  // namespace

std::unique_ptr<Simulator> state_space(const Linear& model, const std::vector<double>& z, double last,
                                       std::unique_ptr<MicroRows> micro) {
    // lengths that are asked for are shorter than those that are known: one micro step, too
    const bool whole = std::all_of(model.lengths.begin(), model.lengths.end(),
                                   [](const auto& each) { return each->count == 1; });
    const bool plain = model.rows == 1 && whole && !model.multistep && !micro;
    const auto fits = [](int size) { return 0 < size && size <= small; };
    if (plain && fits(model.states) && model.inputs <= small && fits(model.outputs)) return fitting(model, z);
    return std::make_unique<StateSpace>(model, z, last, std::move(micro));
}

}  // namespace hocket
