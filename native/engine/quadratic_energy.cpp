#include "engine/quadratic_energy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/dense.hpp"

namespace hocket {

namespace {

constexpr int rounds = 60;
constexpr double close_enough = 4.0 * std::numeric_limits<double>::epsilon();

// The smaller root of a s^2/2 + b s = miss; the lowest point if there is none.
double length_of(double a, double b, double miss) {
    if (a <= 0.0) return b > 0.0 ? miss / b : 0.0;
    const double inside = b * b + 2.0 * a * miss;
    if (inside <= 0.0) return -b / a;
    return 2.0 * miss / (b + std::sqrt(inside));
}

}  // namespace

Quadratic::Quadratic(std::vector<double> Q, std::vector<double> held, int size)
    : Q_(std::move(Q)),
      held_(std::move(held)),
      size_(size),
      pull_(size),
      gradient_(size),
      way_(size),
      moved_(size) {}

void Quadratic::pull(const double* x) {
    std::fill(pull_.begin(), pull_.end(), 0.0);
    add(pull_.data(), Q_.data(), x, size_, size_);
}

double Quadratic::value(const double* x) {
    pull(x);
    return 0.5 * dot(x, pull_.data(), size_);
}

void Quadratic::onto(double* x, double target, const double* push) {
    double W = value(x);
    for (int round = 0; round < rounds; ++round) {
        const double aim =
            target < 0.0 && 0.0 < W ? 0.0 : target;  // first to zero: beside a far target that would be lost
        const double miss = aim - W;
        if (!std::isfinite(miss) || std::fabs(miss) <= close_enough * std::max(std::fabs(aim), std::fabs(W)))
            break;
        pull(x);
        gradient_ = pull_;
        if (held_.empty()) {
            std::copy(x, x + size_, way_.begin());
        } else {
            std::fill(way_.begin(), way_.end(), 0.0);
            add(way_.data(), held_.data(), x, size_, size_);
        }
        double b = dot(gradient_.data(), way_.data(), size_);
        if (b <= 0.0) {
            if (miss < 0.0) break;
            std::copy(push, push + size_, way_.begin());
            b = std::max(dot(gradient_.data(), push, size_), 0.0);
        }
        pull(way_.data());
        const double a = dot(way_.data(), pull_.data(), size_);
        const double length =
            std::max(length_of(a, b, miss), -1.0);  // so that no state changes its sign on the way down
        if (!nearer(x, way_.data(), length, aim, W)) break;
    }
    const double floor = std::max(target, 0.0);
    if (floor * (1.0 + 1e-12) < W) shrink(x, floor);
}

// Moves x by what brings the energy nearer to its target, if anything does.
bool Quadratic::nearer(double* x, const double* d, double length, double target, double& W) {
    if (!std::isfinite(length)) return false;
    for (int halving = 0; halving < 40; ++halving) {
        for (int k = 0; k < size_; ++k) moved_[k] = x[k] + length * d[k];
        const double there = value(moved_.data());
        if (std::fabs(target - there) < std::fabs(target - W)) {
            std::copy(moved_.begin(), moved_.end(), x);
            W = there;
            return true;
        }
        length *= 0.5;
    }
    return false;
}

// Moves x straight towards zero, to where it has this energy.
void Quadratic::shrink(double* x, double target) {
    pull(x);
    for (int k = 0; k < size_; ++k) way_[k] = pull_[k] != 0.0 || Q_[k * size_ + k] != 0.0 ? x[k] : 0.0;
    const auto move_to = [&](double part) {
        for (int k = 0; k < size_; ++k) moved_[k] = x[k] + (part - 1.0) * way_[k];
        return value(moved_.data());
    };
    for (int k = 0; k < size_; ++k) moved_[k] = x[k] - way_[k];
    const double least = value(moved_.data());
    if (least >= target) {
        if (const std::vector<double> lowest = moved_; least < value(x))
            std::copy(lowest.begin(), lowest.end(), x);
        return;
    }
    double low = 0.0, high = 1.0;
    for (int halving = 0; halving < 200; ++halving) {
        const double middle = 0.5 * (low + high);
        (move_to(middle) > target ? high : low) = middle;
    }
    move_to(low);
    std::copy(moved_.begin(), moved_.end(), x);
}

}  // namespace hocket
