// Linear simulators whose state follows the energy agreed on their bonds: the twin of
// simulators/energy_projection.py.
// In:  matrices computed once in Python; inputs, among them what partners store and booked
// Out: the same bits as the specification
#pragma once

#include "engine/quadratic_energy.hpp"
#include "engine/state_space.hpp"

namespace hocket {

// Another bond of a partner, by the numbers of the inputs that tell of it.
struct View {
    int output, input, share;
    double sign;
    int bonds;
};

// A side of a bond, by the numbers of its ports.
struct Seat {
    int output, input, told, share;
    int booked;  // -1: nobody tells
    double sign;
    std::vector<View> beyond;
};

// What all simulators of one balanced model share. The inputs of the linear one come first.
struct Balance {
    std::shared_ptr<Linear> linear;
    int inputs = 0;
    std::vector<Seat> seats;
    std::vector<double> Q, held;
    double whole =
        0.0;  // the step in s for which energies are agreed, where shorter ones are made; 0: every step
    bool straight = false;  // the agreed power is a line
};

// What was agreed for a step of which a simulator makes several: when it began; per bond the part of the
// nominal energy that is handed over, what is settled besides, and the accounts at its beginning. Empty:
// nothing.
struct Agreed {
    double t = 0.0;
    std::vector<double> parts, paid, work;
};

std::unique_ptr<Simulator> make_projected(std::shared_ptr<Balance> balance, const std::vector<double>& z,
                                          double last, std::vector<double> work, double brought,
                                          Agreed agreed);

}  // namespace hocket
