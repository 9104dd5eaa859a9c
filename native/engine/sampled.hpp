// A sampled level with nothing but one linear simulator inside: what Level does for it, without a program.
// In:  inputs as they are when a period begins
// Out: outputs that change when it ends, and at once where they follow the inputs; the bits of the level
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/simulator.hpp"

namespace hocket {

class Sampled final : public Simulator {
  public:
    static constexpr int most = 4;  // inputs, and outputs, that lie beside the rest

    // A number that is handed on: from where, and in which unit.
    struct Handed {
        int source = -1;  // -1: nothing drives it
        double gain = 1.0, offset = 0.0;
        double of(const double* values, double before) const {
            if (source < 0) return before;
            return gain != 1.0 || offset != 0.0 ? gain * values[source] + offset : values[source];
        }
    };
    struct Setup {
        int number = 0;                             // of the level
        std::int64_t length = 1;                    // ticks of a period
        bool follows = false;                       // outputs follow the inputs when a period begins
        bool around = false;                        // the level around has instants
        int inputs = 0;                             // of the level
        std::vector<Handed> taken;                  // per input of the simulator: which one of the level
        std::vector<Handed> given;                  // per output of the level: which one of the simulator
        std::vector<double> offered, used, values;  // inputs of the level, of the simulator; its outputs
    };
    Sampled(std::unique_ptr<Simulator> inner, const Setup& setup);

    bool step(const Span& span, const double* u) override;
    bool output(std::int64_t tick, const double* u, double* y) override;
    StepOutput step_output() const override;
    bool slope(std::int64_t, const double*, double*) override { return false; }
    std::int64_t shown_at(std::int64_t tick) const override { return std::min(tick, now_); }
    bool uses_seconds() const override { return false; }
    bool checks_itself() const override { return true; }
    bool needs_python() const override { return inner_->needs_python(); }
    bool save(Snapshot& to) override;
    bool restore(Snapshot& from) override;
    void set_watch(Watch* watch) override { inner_->set_watch(watch); }
    Failure failure() const override { return failure_; }

  private:
    void take(const double* u) {
        for (int k = 0; k < inputs_; ++k) offered_[k] = u[k];
    }
    void show(double* y) const {
        for (int k = 0; k < outputs_; ++k) y[k] = shown_[k];
    }
    void feed();
    bool own_step();
    bool keep_outputs(bool made, std::int64_t tick);

    std::int64_t now_ = 0, next_ = 0;  // when the period began, and when it ends
    int inputs_, outputs_;
    bool plain_;  // its numbers are handed on as they are
    bool follows_, around_;
    std::array<double, most> shown_{}, offered_{};
    StepOutput step_inner_;
    std::unique_ptr<Simulator> inner_;
    std::array<double, most> used_{}, values_{};
    std::int64_t length_;
    int number_, taken_count_, values_count_;
    std::vector<Handed> taken_, given_;
    Failure failure_;
};

}  // namespace hocket
