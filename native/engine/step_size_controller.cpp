#include "engine/step_size_controller.hpp"

#include <bit>
#include <cmath>

namespace hocket {

namespace {

constexpr double least_ratio = 1e-10;

// Lengths of four digits in binary: few of them occur, and matrices are computed for each.
std::int64_t round_down(std::int64_t parts) {
    const int lost = std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(parts))) - 4);
    return parts >> lost << lost;
}

}  // namespace

std::int64_t StepSizeController::share_out(std::int64_t left) const {
    if (estimate == Estimate::energy && wanted < left && left < 2 * wanted)
        return (left + 2 * quantum - 1) / (2 * quantum) * quantum;
    return std::min(wanted, left);
}

std::int64_t StepSizeController::next(std::int64_t span, double ratio, bool accepted) const {
    const double now = std::max(ratio, least_ratio);
    const double first = accepted ? gains[0] : 1.0, second = accepted ? gains[1] : 0.0,
                 third = accepted ? gains[2] : 0.0;
    double factor = std::pow(safety, first - second + third) * std::pow(now, -first / power);
    if (second != 0.0) factor = factor * std::pow(before, second / power);
    if (third != 0.0) factor = factor * std::pow(earlier, -third / power);
    factor = std::min(accepted ? most : 0.9, std::max(least, factor));
    const double wished = factor * static_cast<double>(span) / static_cast<double>(quantum);
    return std::min(largest, std::max(quantum, round_down(static_cast<std::int64_t>(wished)) * quantum));
}

void StepSizeController::accept(std::int64_t span, double ratio, bool cut) {
    in_a_row = ratio > 1.0 && span <= quantum ? in_a_row + 1 : 0;
    const std::int64_t following = next(span, ratio, true);
    wanted = cut && ratio <= 1.0 ? std::max(wanted, following) : following;
    earlier = before;
    before = std::max(ratio, least_ratio);
}

void StepSizeController::save(Snapshot& to) const {
    to.keep(wanted);
    to.keep(before);
    to.keep(earlier);
    to.keep(in_a_row);
}

void StepSizeController::restore(Snapshot& from) {
    from.take(wanted);
    from.take(before);
    from.take(earlier);
    from.take(in_a_row);
    if (wanted < 1) from.refuse();
}

}  // namespace hocket
