// The next guess of an iteration: the twin of accelerating.py, operation for operation.
// In:  after each sweep what it was given and what it found
// Out: what the next one is given
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/snapshot.hpp"

namespace hocket {

using Values = std::vector<double>;
// Gives numbers to a sweep and returns what it finds; false: it failed.
using Sweep = std::function<bool(const Values&, Values&)>;

class Accelerator {
  public:
    virtual ~Accelerator() = default;
    virtual void begin() {}
    virtual bool leads() const { return true; }  // false: the next guess is what was found
    // The next guess takes the place of `given`; false: a sweep failed, or `stuck`.
    virtual bool next(Values& given, const Values& found, const Sweep& sweep) = 0;
    virtual void save(Snapshot& to) const { to.begin(); }
    virtual void restore(Snapshot& from) { from.rewind(); }
    bool stuck = false;  // a matrix could not be solved with
};

// By name, with its numbers in the order of the Python class.
std::shared_ptr<Accelerator> accelerator(const std::string& name, const std::vector<double>& numbers);

}  // namespace hocket
