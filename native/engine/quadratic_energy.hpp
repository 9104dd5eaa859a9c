// Stored energy x'Qx/2, and how a state is moved onto a level of it: the twin of simulators/energies.py,
// operation for operation.
// In:  a state, and the energy that it shall have
// Out: the state moved there along the gradient of the energy
#pragma once

#include <vector>

namespace hocket {

class Quadratic {
  public:
    // Columns are contiguous. `held` takes from a state what holds energy; empty: all of it does.
    Quadratic(std::vector<double> Q, std::vector<double> held, int size);

    double value(const double* x);

    // Where the gradient vanishes, x leaves along `push`.
    void onto(double* x, double target, const double* push);

  private:
    void pull(const double* x);  // Q x
    bool nearer(double* x, const double* d, double length, double target, double& W);
    void shrink(double* x, double target);

    std::vector<double> Q_, held_;
    int size_;
    std::vector<double> pull_, gradient_, way_, moved_;  // room
};

}  // namespace hocket
