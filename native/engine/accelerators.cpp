#include "engine/accelerators.hpp"

#include <algorithm>
#include <cmath>

#include "engine/elimination.hpp"

namespace hocket {

namespace {

constexpr double nudge = 0x1p-26;
constexpr double singular = 1e-12;
constexpr double settled = 1e-10;  // as small as rounding errors: whether it falls says nothing

Values scale_of(const Values& found) {
    Values scale(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) scale[i] = 1.0 / std::max(1.0, std::fabs(found[i]));
    return scale;
}

Values apply_scale(const Values& numbers, const Values& scale) {
    Values result(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) result[i] = numbers[i] * scale[i];
    return result;
}

Values difference(const Values& one, const Values& other) {
    Values result(one.size());
    for (std::size_t i = 0; i < one.size(); ++i) result[i] = one[i] - other[i];
    return result;
}

double dot(const Values& one, const Values& other) {
    double total = 0.0;
    for (std::size_t i = 0; i < one.size(); ++i) total = total + one[i] * other[i];
    return total;
}

double scaled_size(const Values& residual, const Values& found) {
    const Values parts = apply_scale(residual, scale_of(found));
    return std::sqrt(dot(parts, parts));
}

// onto = onto - factor * direction
void take_off(Values& from, double factor, const Values& direction) {
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = from[i] - factor * direction[i];
}

void go_part(Values& given, const Values& found, double factor) {
    for (std::size_t i = 0; i < given.size(); ++i) given[i] = given[i] + factor * (found[i] - given[i]);
}

void save_values(Snapshot& to, const Values& numbers) {
    to.keep(static_cast<std::int64_t>(numbers.size()));
    to.keep(numbers);
}

void restore_values(Snapshot& from, Values& numbers) {
    numbers.resize(from.take_size());
    from.take(numbers);
}

}  // namespace

bool FixedPoint::next(Values& given, const Values& found, const Sweep&) {
    given = found;
    return true;
}

bool Relaxation::next(Values& given, const Values& found, const Sweep&) {
    go_part(given, found, factor_);
    return true;
}

void Aitken::begin() {
    factor_ = first_;
    scale_.clear();
    before_.clear();
}

bool Aitken::next(Values& given, const Values& found, const Sweep&) {
    if (scale_.empty()) scale_ = scale_of(found);
    const Values residual = apply_scale(difference(found, given), scale_);
    if (!before_.empty()) {
        const Values change = difference(residual, before_);
        const double size = dot(change, change);
        if (size > 0.0) factor_ = -factor_ * dot(before_, change) / size;
    }
    before_ = residual;
    go_part(given, found, factor_);
    return true;
}

void Aitken::save(Snapshot& to) const {
    to.begin();
    to.keep(factor_);
    save_values(to, scale_);
    save_values(to, before_);
}

void Aitken::restore(Snapshot& from) {
    from.rewind();
    from.take(factor_);
    restore_values(from, scale_);
    restore_values(from, before_);
}

void IqnIls::begin() {
    for (Column& column : columns_) ++column.age;
    std::erase_if(columns_, [&](const Column& column) { return column.age > reuse_; });
    scale_.clear();
    begun_ = false;
}

bool IqnIls::next(Values& given, const Values& found, const Sweep&) {
    if (scale_.empty()) scale_ = scale_of(found);
    const Values residual = difference(found, given);
    // a checkpoint from elsewhere may hold any sizes
    std::erase_if(columns_, [&](const Column& column) {
        return column.residual.size() != found.size() || column.found.size() != found.size();
    });
    if (begun_) {
        columns_.insert(columns_.begin(),
                        {0, difference(residual, last_residual_), difference(found, last_found_)});
        if (columns_.size() > found.size()) columns_.resize(found.size());
    }
    begun_ = true;
    last_residual_ = residual;
    last_found_ = found;
    orthogonalise();
    Values rest = apply_scale(residual, scale_), weights;
    for (const Values& direction : directions_) {
        const double weight = dot(direction, rest);
        take_off(rest, weight, direction);
        weights.push_back(-weight);
    }
    for (std::size_t k = weights.size(); k-- > 0;) {
        for (std::size_t j = k + 1; j < weights.size(); ++j) weights[k] = weights[k] - R_[j][k] * weights[j];
        weights[k] = weights[k] / R_[k][k];
    }
    given = found;
    for (std::size_t k = 0; k < weights.size(); ++k)
        for (std::size_t i = 0; i < given.size(); ++i)
            given[i] = given[i] + weights[k] * columns_[k].found[i];
    return true;
}

void IqnIls::save(Snapshot& to) const {
    to.begin();
    to.keep(static_cast<std::int64_t>(columns_.size()));
    for (const Column& column : columns_) {
        to.keep(column.age);
        save_values(to, column.residual);
        save_values(to, column.found);
    }
    to.keep(static_cast<std::int64_t>(begun_));
    save_values(to, scale_);
    save_values(to, last_residual_);
    save_values(to, last_found_);
}

void IqnIls::restore(Snapshot& from) {
    from.rewind();
    columns_.resize(from.take_size());
    for (Column& column : columns_) {
        from.take(column.age);
        restore_values(from, column.residual);
        restore_values(from, column.found);
    }
    begun_ = from.take_count() != 0;
    restore_values(from, scale_);
    restore_values(from, last_residual_);
    restore_values(from, last_found_);
}

void IqnIls::orthogonalise() {
    std::vector<Column> kept;
    directions_.clear();
    R_.clear();
    for (Column& column : columns_) {
        Values rest = apply_scale(column.residual, scale_), entries;
        const double whole = std::sqrt(dot(rest, rest));
        for (const Values& direction : directions_) {
            const double part = dot(direction, rest);
            take_off(rest, part, direction);
            entries.push_back(part);
        }
        const double size = std::sqrt(dot(rest, rest));
        if (size > filter_ * whole) {
            kept.push_back(std::move(column));
            for (double& each : rest) each = each / size;
            directions_.push_back(std::move(rest));
            entries.push_back(size);
            R_.push_back(std::move(entries));
        }
    }
    columns_ = std::move(kept);
}

Newton::Newton(double falls, const std::vector<std::vector<double>>& jacobian)
    : falls_(falls), jacobian_(jacobian), given_(!jacobian.empty()) {
    for (std::size_t i = 0; i < jacobian.size(); ++i)
        for (std::size_t j = 0; j < jacobian[i].size(); ++j)
            matrix_.push_back((i == j ? 1.0 : 0.0) - jacobian[i][j]);
}

void Newton::check_step(std::int64_t span, std::int64_t samples) {
    if ((span != span_ || samples != samples_) && !given_) matrix_.clear();
    span_ = span;
    samples_ = samples;
}

void Newton::finish(const Values& given, const Values& found) {
    const double norm = scaled_size(difference(found, given), found);
    if (!given_ && norm > falls_ * before_ && norm > settled) matrix_.clear();
}

bool Newton::next(Values& given, const Values& found, const Sweep& sweep) {
    const std::size_t size = given.size();
    Values residual = difference(found, given);
    const double norm = scaled_size(residual, found);
    if (matrix_.size() != size * size || (norm > falls_ * before_ && !given_)) {
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
    if (!solve_in_place(matrix.data(), residual.data(), static_cast<int>(size), singular)) {
        stuck = true;
        return false;
    }
    for (std::size_t i = 0; i < size; ++i) given[i] = given[i] + residual[i];
    return true;
}

void Newton::save(Snapshot& to) const {
    to.begin();
    save_values(to, matrix_);
    to.keep(before_);
    to.keep(span_);
    to.keep(samples_);
}

void Newton::restore(Snapshot& from) {
    from.rewind();
    restore_values(from, matrix_);
    from.take(before_);
    from.take(span_);
    from.take(samples_);
}

std::shared_ptr<Accelerator> make_accelerator(const AcceleratorSetup& setup) {
    using Kind = AcceleratorSetup::Kind;
    switch (setup.kind) {
        case Kind::relaxation: return std::make_shared<Relaxation>(setup.number);
        case Kind::aitken: return std::make_shared<Aitken>(setup.number);
        case Kind::iqn_ils: return std::make_shared<IqnIls>(setup.reuse, setup.number);
        case Kind::newton: return std::make_shared<Newton>(setup.number, setup.jacobian);
        case Kind::fixed_point: break;
    }
    return std::make_shared<FixedPoint>();
}

}  // namespace hocket
