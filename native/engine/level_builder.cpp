#include "engine/level_builder.hpp"

#include <algorithm>
#include <stdexcept>

namespace hocket {

void build(Level& level, StateSpacePart part) {
    std::unique_ptr<MicroRows> rows;
    if (part.micro)
        rows = std::make_unique<MicroRows>(part.micro, std::move(part.ports), &level.state.clock,
                                           std::vector<double>());
    const Linear& model = *part.model;
    level.models.insert(part.model);
    level.add_child(state_space(model, part.z, part.last_h, std::move(rows)), model.rows, model.inputs,
                    model.outputs);
}

void build(Level& level, SampledPart part) {
    const Sampled::Setup& setup = part.setup;
    for (std::size_t size :
         {setup.offered.size(), setup.used.size(), setup.values.size(), setup.given.size()})
        if (size > Sampled::most) throw std::invalid_argument("too many ports for a condensed level");
    level.models.insert(part.model);
    auto inner = state_space(*part.model, part.z, part.last_h, nullptr);
    const int outputs = static_cast<int>(setup.given.size());
    level.add_child(std::make_unique<Sampled>(std::move(inner), setup), 1, setup.inputs, outputs);
}

void build(Level& level, ProjectedPart part) {
    const Balance& balance = *part.balance;
    const int rows = balance.linear->rows, inputs = balance.inputs;
    const int outputs = balance.linear->outputs + 1 + static_cast<int>(balance.seats.size());
    level.add_child(make_projected(std::move(part.balance), part.z, part.last_h, std::move(part.work),
                                   part.brought, std::move(part.agreed)),
                    rows, inputs, outputs);
}

void build(Level& level, SimulatorPart part) {
    level.add_child(std::move(part.simulator), part.rows, part.inputs, part.outputs);
}

void build(Level& level, LevelPart part) {
    level.add_child(std::move(part.builder->level), part.rows, part.inputs, part.outputs);
}

void build(Level& level, const FittedInput& part) { level.add_input(part); }

void build(Level& level, const TextPart& part) {
    level.add_text(part.child, part.output, part.target, part.input);
}

void build(Level& level, TextPortsPart part) {
    level.add_text_ports(std::move(part.inputs), std::move(part.outputs));
}

void build(Level& level, const OutputPart& part) { level.add_output(part.source, part.gain, part.offset); }

void build(Level& level, const SamplesPart& part) {
    if (part.values.size() != part.ticks.size() || part.slopes.size() != part.ticks.size())
        throw std::invalid_argument("samples without a time, or times without one");
    LevelState& state = level.state;
    state.add_ring(part.signal, part.depth, part.sloped);
    for (std::size_t k = 0; k < part.ticks.size(); ++k)
        state.memory.ring(part.signal).push(part.ticks[k], part.values[k], part.slopes[k]);
}

void build(Level& level, MemoryPart part) {
    LevelState& state = level.state;
    ExchangeMemory& memory = state.memory;
    if (part.u.size() != memory.u.size() || part.y.size() != memory.y.size() ||
        part.bases.size() != state.children.size() ||
        part.used.coefficients.size() != memory.used.coefficients.size() ||
        part.offered.coefficients.size() != memory.offered.coefficients.size())
        throw std::invalid_argument("an exchange memory of another size");
    std::copy(part.u.begin(), part.u.end(), memory.u.begin());
    std::copy(part.y.begin(), part.y.end(), memory.y.begin());
    for (std::size_t k = 0; k < part.bases.size(); ++k) state.children[k].base = part.bases[k];
    memory.used = std::move(part.used);
    memory.offered = std::move(part.offered);
}

void build(Level& level, const AccountsPart& part) {
    level.ledger.accounts.bonds = part.bonds;
    for (const AccountSetup& account : part.accounts) level.ledger.accounts.add(account);
}

void build(Level& level, MemberPart part) {
    Member member;
    for (int source : part.sources) member.sources.push_back({source});
    member.event_input = std::move(part.event_inputs);
    member.followed = std::move(part.followed);
    member.event_output = std::move(part.event_outputs);
    member.takes_part = part.takes_part;
    member.level = part.level;
    level.add_member(std::move(member));
}

void build(Level& level, InstantsPart part) {
    level.instants.set_outputs(std::move(part.outputs));
    level.instants.around = part.around;
    level.instants.longest = part.longest;
    level.set_ends_outside(part.ends_outside);
}

void build(Level& level, ProgramsPart part) {
    level.set_programs(std::move(part.step), std::move(part.output));
}

}  // namespace hocket
