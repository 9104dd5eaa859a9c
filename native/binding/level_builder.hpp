// A level under construction.
// In:  children, drives, accounts and state, one after the other
// Out: the Level
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "binding/python_simulator.hpp"
#include "engine/level.hpp"
#include "engine/projected.hpp"
#include "engine/state_space.hpp"

namespace hocket {

namespace nb = nanobind;
using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>;

inline std::vector<double> taken(const Numbers& array) { return {array.data(), array.data() + array.size()}; }

// add_level and Engine take it over.
struct Builder {
    std::shared_ptr<Level> level;

    Builder(int number, std::int64_t tick, std::int64_t start, std::int64_t denominator, std::int64_t length,
            int degree, int inputs)
        : level(std::make_shared<Level>(number, Clock{tick, start, denominator}, length, degree, inputs)) {}

    void add_state_space(const std::shared_ptr<Linear>& model, const Numbers& z, double last,
                         const std::shared_ptr<RowBuffer>& rows, std::vector<int> ports) {
        std::unique_ptr<MicroRows> micro;
        if (rows) micro = std::make_unique<MicroRows>(rows, std::move(ports), &level->state.clock);
        level->models.insert(model);
        level->add_child(state_space(*model, taken(z), last, std::move(micro)), model->rows, model->inputs,
                         model->outputs);
    }
    void add_projected(const std::shared_ptr<Balance>& balance, const Numbers& z, double last,
                       const Numbers& work, double brought, double agreed,
                       const std::vector<std::vector<double>>& terms) {
        const int outputs = balance->linear->outputs + 1 + static_cast<int>(balance->seats.size());
        const Agreed now = terms.empty() ? Agreed{} : Agreed{agreed, terms.at(0), terms.at(1), terms.at(2)};
        level->add_child(projected(balance, taken(z), last, taken(work), brought, now), balance->linear->rows,
                         balance->inputs, outputs);
    }
    void add_python(nb::object simulator, nb::object micro, int rows, int inputs, int outputs) {
        level->add_child(std::make_unique<PythonSimulator>(std::move(simulator), rows, inputs, outputs,
                                                           level->state.clock, std::move(micro)),
                         rows, inputs, outputs);
    }
    void add_native(std::shared_ptr<Simulator> simulator, int rows, int inputs, int outputs) {
        level->add_child(std::move(simulator), rows, inputs, outputs);
    }
    void add_level(Builder& inner, int rows, int inputs, int outputs) {
        level->add_child(std::move(inner.level), rows, inputs, outputs);
    }
    // columns: kind, child, input, source, samples, plain, seen / alpha, gain, offset, before, after
    void add_drives(const Integers& whole, const Numbers& real) {
        const std::size_t count = whole.size() / 7;
        for (std::size_t k = 0; k < count; ++k) {
            const std::int64_t* w = whole.data() + 7 * k;
            const double* r = real.data() + 5 * k;
            FittedInput fit;
            fit.kind = static_cast<FittedInput::Kind>(w[0]);
            fit.child = static_cast<int>(w[1]);
            fit.input = static_cast<int>(w[2]);
            fit.source = static_cast<int>(w[3]);
            fit.samples = static_cast<int>(w[4]);
            fit.filter.seen = w[6];
            fit.alpha = r[0];
            fit.gain = r[1];
            fit.offset = r[2];
            fit.filter.before = r[3];
            fit.filter.after = r[4];
            level->add_input(fit);
        }
    }
    void set_ring(int signal, int depth, bool sloped, const Integers& ticks, const Numbers& values,
                  const Numbers& slopes) {
        level->state.add_ring(signal, depth, sloped);
        for (std::size_t k = 0; k < ticks.size(); ++k)
            level->state.memory.rings.back().push(ticks.data()[k], values.data()[k], slopes.data()[k]);
    }
    void set_state(const Numbers& u, const Numbers& y, const Integers& base, const Numbers& used,
                   std::int64_t used_base, const Numbers& offered, std::int64_t offered_base) {
        const auto copy = [](const auto& from, auto& to) {
            if (from.size() != to.size()) throw std::invalid_argument("state of another size");
            std::copy(from.data(), from.data() + from.size(), to.begin());
        };
        copy(u, level->state.memory.u);
        copy(y, level->state.memory.y);
        copy(used, level->state.memory.used.coefficients);
        copy(offered, level->state.memory.offered.coefficients);
        if (base.size() != level->state.children.size()) throw std::invalid_argument("state of another size");
        for (std::size_t k = 0; k < base.size(); ++k) level->state.children[k].base = base.data()[k];
        level->state.memory.used.base = used_base;
        level->state.memory.offered.base = offered_base;
    }
    void set_bonds(std::size_t count) { level->ledger.accounts.bonds = count; }
    // slopes: of a linear model C A, C B and, where the output reacts at once, D; else empty
    void add_account(int child, int signal, int input, double factor, bool asked, bool anew, int inside,
                     const std::vector<double>& slopes, int states, bool reacts,
                     const std::vector<double>& now, std::int64_t since) {
        Account account;
        account.child = child;
        account.input = input;
        account.asked = asked;
        account.anew = anew;
        account.inside = inside;
        account.reacts = reacts;
        account.states = states;
        Accounts& accounts = level->ledger.accounts;
        accounts.add(account, signal, factor, slopes);
        accounts.power.back() = now.at(0);
        accounts.energy.back() = now.at(1);
        accounts.from_y.back() = now.at(2);
        accounts.from_rest.back() = now.at(3);
        accounts.since.back() = since;
    }
    void record(std::shared_ptr<RowBuffer> rows, const std::vector<int>& children,
                const std::vector<int>& ports, const std::vector<bool>& are_inputs) {
        std::vector<Column> columns;
        for (std::size_t k = 0; k < children.size(); ++k)
            columns.push_back({children[k] < 0 ? Column::Kind::ledger
                               : are_inputs[k] ? Column::Kind::input
                                               : Column::Kind::output,
                               children[k], ports[k]});
        level->record(std::move(rows), std::move(columns));
    }
};

}  // namespace hocket
