#include "engine/accelerators.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "engine/elimination.hpp"

namespace hocket {

namespace {

constexpr double nudge = 0x1p-26;
constexpr double singular = 1e-12;
constexpr double infinity = std::numeric_limits<double>::infinity();

Values scale_of(const Values& found) {
    Values scale(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) scale[i] = 1.0 / std::max(1.0, std::fabs(found[i]));
    return scale;
}

Values scaled(const Values& numbers, const Values& scale) {
    Values result(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) result[i] = numbers[i] * scale[i];
    return result;
}

Values minus(const Values& one, const Values& other) {
    Values result(one.size());
    for (std::size_t i = 0; i < one.size(); ++i) result[i] = one[i] - other[i];
    return result;
}

double dot(const Values& one, const Values& other) {
    double total = 0.0;
    for (std::size_t i = 0; i < one.size(); ++i) total = total + one[i] * other[i];
    return total;
}

// onto = onto - factor * direction
void take_off(Values& from, double factor, const Values& direction) {
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = from[i] - factor * direction[i];
}

void go_part(Values& given, const Values& found, double factor) {
    for (std::size_t i = 0; i < given.size(); ++i) given[i] = given[i] + factor * (found[i] - given[i]);
}

void keep_all(Snapshot& to, const Values& numbers) {
    to.keep(static_cast<std::int64_t>(numbers.size()));
    to.keep(numbers);
}

void take_all(Snapshot& from, Values& numbers) {
    numbers.resize(static_cast<std::size_t>(from.taken()));
    from.take(numbers);
}

class Plain final : public Accelerator {
  public:
    bool leads() const override { return false; }
    bool next(Values& given, const Values& found, const Sweep&) override {
        given = found;
        return true;
    }
};

class Relaxing final : public Accelerator {
  public:
    explicit Relaxing(double factor) : factor_(factor) {}
    bool next(Values& given, const Values& found, const Sweep&) override {
        go_part(given, found, factor_);
        return true;
    }

  private:
    double factor_;
};

class Following final : public Accelerator {
  public:
    explicit Following(double first) : first_(first), factor_(first) {}
    void begin() override {
        factor_ = first_;
        scale_.clear();
        before_.clear();
    }
    bool next(Values& given, const Values& found, const Sweep&) override {
        if (scale_.empty()) scale_ = scale_of(found);
        const Values residual = scaled(minus(found, given), scale_);
        if (!before_.empty()) {
            const Values change = minus(residual, before_);
            const double size = dot(change, change);
            if (size > 0.0) factor_ = -factor_ * dot(before_, change) / size;
        }
        before_ = residual;
        go_part(given, found, factor_);
        return true;
    }
    void keep(Snapshot& to) const override {
        to.begin();
        to.keep(factor_);
        keep_all(to, scale_);
        keep_all(to, before_);
    }
    void go_back(Snapshot& from) override {
        from.rewind();
        from.take(factor_);
        take_all(from, scale_);
        take_all(from, before_);
    }

  private:
    double first_, factor_;
    Values scale_, before_;
};

class Learning final : public Accelerator {
  public:
    Learning(double reuse, double limit) : reuse_(static_cast<std::int64_t>(reuse)), limit_(limit) {}

    void begin() override {
        for (Column& column : columns_) ++column.age;
        std::erase_if(columns_, [&](const Column& column) { return column.age > reuse_; });
        scale_.clear();
        begun_ = false;
    }

    bool next(Values& given, const Values& found, const Sweep&) override {
        if (scale_.empty()) scale_ = scale_of(found);
        const Values residual = minus(found, given);
        if (begun_) {
            columns_.insert(columns_.begin(),
                            {0, minus(residual, last_residual_), minus(found, last_found_)});
            if (columns_.size() > found.size()) columns_.resize(found.size());
        }
        begun_ = true;
        last_residual_ = residual;
        last_found_ = found;
        orthogonal();
        Values rest = scaled(residual, scale_), weights;
        for (const Values& direction : directions_) {
            const double weight = dot(direction, rest);
            take_off(rest, weight, direction);
            weights.push_back(-weight);
        }
        for (std::size_t k = weights.size(); k-- > 0;) {
            for (std::size_t j = k + 1; j < weights.size(); ++j)
                weights[k] = weights[k] - R_[j][k] * weights[j];
            weights[k] = weights[k] / R_[k][k];
        }
        given = found;
        for (std::size_t k = 0; k < weights.size(); ++k)
            for (std::size_t i = 0; i < given.size(); ++i)
                given[i] = given[i] + weights[k] * columns_[k].found[i];
        return true;
    }

    void keep(Snapshot& to) const override {
        to.begin();
        to.keep(static_cast<std::int64_t>(columns_.size()));
        for (const Column& column : columns_) {
            to.keep(column.age);
            keep_all(to, column.residual);
            keep_all(to, column.found);
        }
        to.keep(static_cast<std::int64_t>(begun_));
        keep_all(to, scale_);
        keep_all(to, last_residual_);
        keep_all(to, last_found_);
    }
    void go_back(Snapshot& from) override {
        from.rewind();
        columns_.resize(static_cast<std::size_t>(from.taken()));
        for (Column& column : columns_) {
            from.take(column.age);
            take_all(from, column.residual);
            take_all(from, column.found);
        }
        begun_ = from.taken() != 0;
        take_all(from, scale_);
        take_all(from, last_residual_);
        take_all(from, last_found_);
    }

  private:
    struct Column {
        std::int64_t age = 0;
        Values residual, found;  // how they changed
    };

    void orthogonal() {
        std::vector<Column> kept;
        directions_.clear();
        R_.clear();
        for (Column& column : columns_) {
            Values rest = scaled(column.residual, scale_), entries;
            const double whole = std::sqrt(dot(rest, rest));
            for (const Values& direction : directions_) {
                const double part = dot(direction, rest);
                take_off(rest, part, direction);
                entries.push_back(part);
            }
            const double size = std::sqrt(dot(rest, rest));
            if (size > limit_ * whole) {
                kept.push_back(std::move(column));
                for (double& each : rest) each = each / size;
                directions_.push_back(std::move(rest));
                entries.push_back(size);
                R_.push_back(std::move(entries));
            }
        }
        columns_ = std::move(kept);
    }

    std::int64_t reuse_;
    double limit_;
    std::vector<Column> columns_;
    Values scale_;
    bool begun_ = false;
    Values last_residual_, last_found_;
    std::vector<Values> directions_, R_;
};

class Probing final : public Accelerator {
  public:
    explicit Probing(double falls) : falls_(falls) {}
    void begin() override { before_ = infinity; }

    bool next(Values& given, const Values& found, const Sweep& sweep) override {
        const std::size_t size = given.size();
        Values residual = minus(found, given);
        const Values scale = scale_of(found), parts = scaled(residual, scale);
        const double norm = std::sqrt(dot(parts, parts));
        if (matrix_.empty() || norm > falls_ * before_) {
            Values moved, after;
            matrix_.resize(size * size);
            for (std::size_t j = 0; j < size; ++j) {
                moved = given;
                moved[j] =
                    given[j] + nudge * std::max(std::max(1.0, std::fabs(given[j])), std::fabs(residual[j]));
                if (!sweep(moved, after)) return false;
                for (std::size_t i = 0; i < size; ++i)
                    matrix_[i * size + j] = (residual[i] - (after[i] - moved[i])) / (moved[j] - given[j]);
            }
        }
        before_ = norm;
        Values matrix = matrix_;
        if (!solved(matrix.data(), residual.data(), static_cast<int>(size), singular)) {
            stuck = true;
            return false;
        }
        for (std::size_t i = 0; i < size; ++i) given[i] = given[i] + residual[i];
        return true;
    }
    void keep(Snapshot& to) const override {
        to.begin();
        keep_all(to, matrix_);
        to.keep(before_);
    }
    void go_back(Snapshot& from) override {
        from.rewind();
        take_all(from, matrix_);
        from.take(before_);
    }

  private:
    double falls_;
    Values matrix_;
    double before_ = infinity;
};

}  // namespace

std::shared_ptr<Accelerator> accelerator(const std::string& name, const std::vector<double>& numbers) {
    if (name == "Relax") return std::make_shared<Relaxing>(numbers.at(0));
    if (name == "Aitken") return std::make_shared<Following>(numbers.at(0));
    if (name == "QuasiNewton") return std::make_shared<Learning>(numbers.at(0), numbers.at(1));
    if (name == "Newton") return std::make_shared<Probing>(numbers.at(0));
    if (name.empty()) return std::make_shared<Plain>();
    throw std::invalid_argument("unknown accelerator " + name);
}

}  // namespace hocket
