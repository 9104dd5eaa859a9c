// Directional derivatives of an FMU: how unknowns change along a seed of knowns, where it stands.
// In:  the library of an FMU, and which version of FMI it speaks
// Out: one call, the same for FMI 2 and 3
#pragma once

#include <vector>

#include "fmu/fmi.hpp"
#include "fmu/library.hpp"

namespace hocket {

class DirectionalCalls {
  public:
    DirectionalCalls() = default;
    DirectionalCalls(const Library& library, int version);

    explicit operator bool() const { return two_ || three_; }
    const char* name() const { return three_ ? three_.name : two_.name; }
    // A number for each value of the knowns in the seed, one for each value of the unknowns in the result.
    fmi::Status operator()(fmi::Instance instance, const std::vector<fmi::Reference>& unknowns,
                           const std::vector<fmi::Reference>& knowns, const std::vector<double>& seed,
                           std::vector<double>& result) const;

  private:
    Function<fmi::Directional2> two_;
    Function<fmi::Directional3> three_;
};

}  // namespace hocket
