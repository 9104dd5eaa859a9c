#include "fmu/directional.hpp"

namespace hocket {

DirectionalCalls::DirectionalCalls(const Library& library, int version) {
    if (version == 2) library.find(two_, "fmi2GetDirectionalDerivative");
    if (version == 3) library.find(three_, "fmi3GetDirectionalDerivative");
}

fmi::Status DirectionalCalls::operator()(fmi::Instance instance, const std::vector<fmi::Reference>& unknowns,
                                         const std::vector<fmi::Reference>& knowns,
                                         const std::vector<double>& seed, std::vector<double>& result) const {
    if (three_)
        return three_(instance, unknowns.data(), unknowns.size(), knowns.data(), knowns.size(), seed.data(),
                      seed.size(), result.data(), result.size());
    return two_(instance, unknowns.data(), unknowns.size(), knowns.data(), knowns.size(), seed.data(),
                result.data());
}

}  // namespace hocket
