// The next guess of an iteration: the twin of engine/reference/acceleration.py, operation for operation.
// In:  after each sweep what it was given and what it found
// Out: what the next one is given
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "engine/snapshot.hpp"

namespace hocket {

using Values = std::vector<double>;
// Gives numbers to a sweep and returns what it finds; false: it failed.
using Sweep = std::function<bool(const Values&, Values&)>;

// What an accelerator is made with.
struct AcceleratorSetup {
    enum class Kind : int { fixed_point, relaxation, aitken, iqn_ils, newton };
    Kind kind = Kind::fixed_point;
    double number = 0.0;  // factor, filter, or by how much the residual falls
    std::int64_t reuse = 0;
    std::vector<std::vector<double>> jacobian;
};

class Accelerator {
  public:
    virtual ~Accelerator() = default;
    virtual AcceleratorSetup setup() const = 0;
    virtual void begin() {}
    virtual bool leads() const { return true; }  // false: the next guess is what was found
    // The next guess takes the place of `given`; false: a sweep failed, or `stuck`.
    virtual bool next(Values& given, const Values& found, const Sweep& sweep) = 0;
    // Of those that correct what was predicted: a step begins; its last iteration was given and has found.
    virtual void check_step(std::int64_t, std::int64_t) {}
    virtual void finish(const Values&, const Values&) {}
    virtual void save(Snapshot& to) const { to.begin(); }
    virtual void restore(Snapshot& from) { from.rewind(); }
    bool stuck = false;  // a matrix could not be solved with
};

// Without acceleration: the next guess is what was found.
class FixedPoint final : public Accelerator {
  public:
    AcceleratorSetup setup() const override { return {}; }
    bool leads() const override { return false; }
    bool next(Values& given, const Values& found, const Sweep& sweep) override;
};

// By a constant factor.
class Relaxation final : public Accelerator {
  public:
    explicit Relaxation(double factor) : factor_(factor) {}
    AcceleratorSetup setup() const override { return {AcceleratorSetup::Kind::relaxation, factor_, 0, {}}; }
    bool next(Values& given, const Values& found, const Sweep& sweep) override;

  private:
    double factor_;
};

// A relaxation whose factor follows from the last two residuals (Irons & Tuck 1969).
class Aitken final : public Accelerator {
  public:
    explicit Aitken(double first) : first_(first), factor_(first) {}
    AcceleratorSetup setup() const override { return {AcceleratorSetup::Kind::aitken, first_, 0, {}}; }
    void begin() override;
    bool next(Values& given, const Values& found, const Sweep& sweep) override;
    void save(Snapshot& to) const override;
    void restore(Snapshot& from) override;

  private:
    double first_, factor_;
    Values scale_, before_;
};

// Newton's method with a Jacobian learned from the sweeps: IQN-ILS (Degroote, Bathe & Vierendeels 2009).
class IqnIls final : public Accelerator {
  public:
    IqnIls(std::int64_t reuse, double filter) : reuse_(reuse), filter_(filter) {}
    AcceleratorSetup setup() const override { return {AcceleratorSetup::Kind::iqn_ils, filter_, reuse_, {}}; }
    void begin() override;
    bool next(Values& given, const Values& found, const Sweep& sweep) override;
    void save(Snapshot& to) const override;
    void restore(Snapshot& from) override;

  private:
    struct Column {
        std::int64_t age = 0;
        Values residual, found;  // how they changed
    };
    void orthogonalise();

    std::int64_t reuse_;
    double filter_;
    std::vector<Column> columns_;
    Values scale_;
    bool begun_ = false;
    Values last_residual_, last_found_;
    std::vector<Values> directions_, R_;
};

// Newton's method, with a Jacobian by one more sweep for each number.
class Newton final : public Accelerator {
  public:
    Newton(double falls, const std::vector<std::vector<double>>& jacobian);
    AcceleratorSetup setup() const override { return {AcceleratorSetup::Kind::newton, falls_, 0, jacobian_}; }
    void begin() override { before_ = std::numeric_limits<double>::infinity(); }
    void check_step(std::int64_t span, std::int64_t samples) override;
    void finish(const Values& given, const Values& found) override;
    bool next(Values& given, const Values& found, const Sweep& sweep) override;
    void save(Snapshot& to) const override;
    void restore(Snapshot& from) override;

  private:
    double falls_;
    std::vector<std::vector<double>> jacobian_;  // as it was given
    bool given_;                                 // whether the matrix is
    Values matrix_;
    std::int64_t span_ = 0, samples_ = 0;  // of the steps that the matrix is for
    double before_ = std::numeric_limits<double>::infinity();
};

std::shared_ptr<Accelerator> make_accelerator(const AcceleratorSetup& setup);

}  // namespace hocket
