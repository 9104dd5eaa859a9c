#include <variant>

#include "engine/level.hpp"

namespace hocket {

double Level::input_value(int number, int port) const {
    const Child& child = state.children[number];
    const double* c = state.memory.u.data() + state.slots[number].u + port;
    return value_at(c, child.rows, child.inputs, state.clock.span(state.now - child.base));
}

void Level::set_own_input(int port, double value) {
    OwnInputs& offered = state.memory.offered;
    for (int row = 0; row <= state.memory.degree; ++row)
        offered.coefficients[row * state.memory.inputs + port] = row == 0 ? value : 0.0;
    offered.base = state.now;
}

void Level::set_input(int child, int port, double value) {
    if (!overrides_.set_input(child, port, value)) return;
    instants.silence(child, port);
    refresh_all();
}

void Level::release_input(int child, int port) {
    if (!overrides_.release_input(child, port)) return;
    instants.unsilence(child, port);
    refresh_all();
}

void Level::set_output(int child, int port, double value) {
    if (overrides_.set_output(child, port, value)) refresh_all();
}

bool Level::release_output(int child, int port, bool evaluate) {
    if (overrides_.release_output(child, port)) refresh_all();
    return !evaluate || overrides_.show_output(child, port, stepping_.inputs_now(child));
}

// What programs know of inputs and of how children step, found out anew.
void Level::refresh_all() {
    stepping_.prepare();
    refresh(step_program_);
    refresh(output_program_);
    instants.collect_inputs();
}

void Level::refresh(Program& program) {
    const auto refresh_one = [this]<class T>(T& each) {
        for_each_body(each, [this](Program& body) { refresh(body); });
        if constexpr (std::is_same_v<T, SolveOperation>)
            each.inputs = fitting_.collect(each.children);
        else if constexpr (std::is_same_v<T, FeedOperation> || std::is_same_v<T, FeedPortsOperation> ||
                           std::is_same_v<T, StepReadOperation>)
            prepare(each);
    };
    for (Operation& operation : program) std::visit(refresh_one, operation);
}

}  // namespace hocket
