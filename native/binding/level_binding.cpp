// Levels and linear models as Python hands them over.
// In:  arrays, and operations as tuples
// Out: a Builder with its program; a Linear with its lengths of steps
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "binding/level_builder.hpp"

namespace hocket {

namespace {

// Each (rows x columns) matrix of a stack, column by column.
std::vector<double> columns(const Numbers& array, std::size_t rows, std::size_t width) {
    std::vector<double> result;
    result.reserve(array.size());
    const std::size_t block = rows * width;
    for (std::size_t at = 0; block && at < array.size(); at += block)
        for (std::size_t j = 0; j < width; ++j)
            for (std::size_t i = 0; i < rows; ++i) result.push_back(array.data()[at + i * width + j]);
    return result;
}

std::shared_ptr<StepSizeController> controller(const std::vector<double>& n) {
    auto made = std::make_shared<StepSizeController>();
    const auto whole = [&](int k) { return static_cast<std::int64_t>(n.at(k)); };
    made->tolerance = n.at(0);
    made->estimate = static_cast<StepSizeController::Estimate>(whole(1));
    made->per_unit = n.at(2) != 0.0;
    for (int k = 0; k < 3; ++k) made->gains[k] = n.at(3 + k);
    made->quantum = whole(6);
    made->wanted = whole(7);
    made->largest = whole(8);
    made->rejects = n.at(9) != 0.0;
    made->safety = n.at(10);
    made->most = n.at(11);
    made->least = n.at(12);
    made->power = n.at(13);
    return made;
}

Program program(const nb::list& encoded) {
    Program operations;
    for (nb::handle each : encoded) {
        const auto parts = nb::cast<nb::tuple>(each);
        const auto kind = nb::cast<std::string>(parts[0]);
        const auto children = nb::cast<std::vector<int>>(parts[1]);
        const auto count = nb::cast<std::int64_t>(parts[2]);
        std::vector<Program> bodies;
        for (nb::handle body : nb::cast<nb::list>(parts[4]))
            bodies.push_back(program(nb::cast<nb::list>(body)));
        const auto signals = nb::cast<std::vector<int>>(parts[5]);
        const auto slopes = nb::cast<std::vector<int>>(parts[6]);
        const auto number = nb::cast<int>(parts[7]);
        const auto [up, down] = nb::cast<std::pair<std::int64_t, std::int64_t>>(parts[12]);
        const Fraction fraction{up, down};
        Workload workload;
        workload.parallel = nb::cast<bool>(parts[3]);
        if (kind == "admit") operations.push_back(AdmitOperation{});
        if (kind == "record") operations.push_back(RecordOperation{});
        if (kind == "feed") operations.push_back(FeedOperation{children, {}});
        if (kind == "read") operations.push_back(ReadOperation{children});
        if (kind == "step") operations.push_back(StepOperation{children, count, fraction, workload});
        if (kind == "step_read") operations.push_back(StepReadOperation{children, count, fraction, workload});
        if (kind == "solve")
            operations.push_back(SolveOperation{children, number, {signals, slopes}, {}, {}});
        if (kind == "save") operations.push_back(SaveOperation{children});
        if (kind == "restore") operations.push_back(RestoreOperation{children});
        if (kind == "repeat")
            operations.push_back(RepeatOperation{
                bodies[0],
                number,
                static_cast<int>(count),
                nb::cast<double>(parts[8]),
                {signals, slopes},
                accelerator(nb::cast<std::string>(parts[9]), nb::cast<std::vector<double>>(parts[10]))});
        if (kind == "adapt")
            operations.push_back(AdaptOperation{bodies[0], number, signals,
                                                nb::cast<std::vector<int>>(parts[11]),
                                                controller(nb::cast<std::vector<double>>(parts[10]))});
        if (kind == "next") operations.push_back(NextOperation{bodies});
        if (kind == "times") operations.push_back(TimesOperation{bodies[0], static_cast<int>(count)});
        if (kind == "together") operations.push_back(TogetherOperation{bodies, workload});
        if (kind == "open") operations.push_back(OpenAccountsOperation{slopes, signals});
        if (kind == "close")
            operations.push_back(
                CloseAccountsOperation{slopes, signals, count, fraction, number != 0, number == 2, {}, {}});
    }
    return operations;
}

std::shared_ptr<Linear> linear(int rows, bool multistep, const Numbers& A, const Numbers& B, const Numbers& C,
                               const Numbers& D, int size, int inputs, int outputs) {
    auto model = std::make_shared<Linear>();
    model->rows = rows;
    model->size = size;
    model->inputs = inputs;
    model->outputs = outputs;
    model->multistep = multistep;
    model->states = multistep ? 2 * size : size;
    const auto s = static_cast<std::size_t>(size);
    const auto m = static_cast<std::size_t>(inputs), p = static_cast<std::size_t>(outputs);
    model->A = columns(A, s, s);
    model->B = columns(B, s, m);
    model->C = columns(C, p, s);
    model->D = columns(D, p, m);
    model->feeds_through = std::any_of(model->D.begin(), model->D.end(), [](double d) { return d != 0.0; });
    return model;
}

void add_length(Linear& model, std::int64_t ticks, double h, int count, double length, const Numbers& Phi,
                const Numbers& Gamma, const Numbers& first_Phi, const Numbers& first_Gamma,
                const Numbers& works) {
    const auto n = static_cast<std::size_t>(model.states), m = static_cast<std::size_t>(model.inputs);
    auto added = std::make_unique<Length>();
    added->ticks = ticks;
    added->h = h;
    added->count = count;
    added->length = length;
    added->maps = {columns(Phi, n, n), columns(Gamma, n, m)};
    added->first = {columns(first_Phi, n, n), columns(first_Gamma, n, m)};
    const std::size_t width = n + m * static_cast<std::size_t>(model.rows);
    added->works = columns(works, works.size() ? works.size() / width : 0, width);
    model.lengths.push_back(std::move(added));
}

using EncodedView = std::tuple<int, int, int, double, int>;
using EncodedSeat = std::tuple<int, int, int, int, int, double, std::vector<EncodedView>>;

std::shared_ptr<Balance> balance(const std::shared_ptr<Linear>& model, int inputs,
                                 const std::vector<EncodedSeat>& seats, const Numbers& Q, const Numbers& held,
                                 double whole, bool straight) {
    auto made = std::make_shared<Balance>();
    made->linear = model;
    made->inputs = inputs;
    for (const auto& [output, input, told, share, booked, sign, beyond] : seats) {
        Seat& seat = made->seats.emplace_back(Seat{output, input, told, share, booked, sign, {}});
        for (const auto& [out, in, stored, direction, bonds] : beyond)
            seat.beyond.push_back({out, in, stored, direction, bonds});
    }
    const auto size = static_cast<std::size_t>(model->size);
    made->Q = columns(Q, size, size);
    made->held = columns(held, size, size);
    made->whole = whole;
    made->straight = straight;
    return made;
}

// links: the outputs that one host uses of another; inputs: (signal, link, place); outputs: (signal, inputs
// it reacts to)
void set_post(Builder& self, int signals, const std::vector<std::vector<int>>& links,
              const std::vector<std::vector<std::vector<int>>>& inputs,
              const std::vector<std::vector<std::vector<int>>>& outputs) {
    auto post = std::make_unique<MessageCounter>();
    post->versions.resize(signals);
    for (const auto& link : links) post->links.push_back({link, std::vector<std::int64_t>(link.size())});
    post->members.resize(inputs.size());
    for (std::size_t child = 0; child < inputs.size(); ++child) {
        for (const auto& n : inputs[child])
            post->members[child].inputs.push_back({n[0], n[1], n[2], 0, false});
        for (const auto& n : outputs[child])
            post->members[child].outputs.push_back({n[0], std::vector<int>(n.begin() + 1, n.end())});
    }
    self.level->messages = std::move(post);
}

}  // namespace

void bind_levels(nb::module_& module) {
    nb::class_<Linear>(module, "Linear")
        .def("add", &add_length)
        .def("ask", [](Linear& self, nb::object asked) {
            self.ask = [&self, asked](std::int64_t ticks) {
                const auto found = nb::cast<nb::tuple>(asked(ticks));
                add_length(self, ticks, nb::cast<double>(found[0]), nb::cast<int>(found[1]),
                           nb::cast<double>(found[2]), nb::cast<Numbers>(found[3]),
                           nb::cast<Numbers>(found[4]), nb::cast<Numbers>(found[5]),
                           nb::cast<Numbers>(found[6]), nb::cast<Numbers>(found[7]));
            };
        });
    module.def("linear", &linear);
    nb::class_<Balance>(module, "Balance");
    module.def("balance", &balance);
    nb::class_<Builder>(module, "Level")
        .def(nb::init<int, std::int64_t, std::int64_t, std::int64_t, std::int64_t, int, int>())
        .def("add_state_space", &Builder::add_state_space, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(),
             nb::arg())
        .def("add_projected", &Builder::add_projected)
        .def("add_python", &Builder::add_python, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg())
        .def("add_native", &Builder::add_native)
        .def("add_text", [](Builder& self, int from, int source, int to,
                            int target) { self.level->add_text(from, source, to, target); })
        .def("add_level", &Builder::add_level)
        .def("add_drives", &Builder::add_drives)
        .def("add_output", [](Builder& self, int source, double gain,
                              double offset) { self.level->add_output(source, gain, offset); })
        .def("set_ring", &Builder::set_ring)
        .def("set_state", &Builder::set_state)
        .def("set_programs",
             [](Builder& self, const nb::list& step, const nb::list& output) {
                 self.level->set_programs(program(step), program(output));
             })
        .def("set_bonds", &Builder::set_bonds)
        .def("add_account", &Builder::add_account)
        .def("set_post", &set_post)
        .def("record", &Builder::record);
}

}  // namespace hocket
