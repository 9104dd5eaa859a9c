// Isolated simulators as Python sees them: simulators/fmu/isolated.py asks, simulators/fmu/serving.py
// answers.
// In:  shared memory by its file descriptor
// Out: both ends of it
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <optional>

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__APPLE__)
#include <pthread.h>
#endif

#include "engine/watch.hpp"
#include "isolation/isolated.hpp"
#include "isolation/server.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace hocket {

namespace {

using Numbers = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flat = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::string text(const nb::bytes& raw) { return {raw.c_str(), raw.size()}; }
nb::bytes bytes(const std::string& raw) { return nb::bytes(raw.data(), raw.size()); }

// Python runs the handlers of signals on its main thread only. Other threads must not wait for the
// interpreter lock: the main thread may hold it while it waits for them.
bool main_thread() {
#ifdef __linux__
    return syscall(SYS_gettid) == getpid();
#elif defined(__APPLE__)
    return pthread_main_np() != 0;
#else
    return false;  // Ctrl-C is heard when the answer has come
#endif
}

PyObject* raised = nullptr;  // by a handler; guarded by the interpreter lock

void keep_raised() {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    Py_XDECREF(raised);
    raised = value;
}

bool was_interrupted() {
    static Nanoseconds looked = 0;
    if (!main_thread() || now() - looked < 50'000'000) return false;
    looked = now();
    nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() == 0) return false;
    keep_raised();
    return true;
}

// Within `with`, a thread that waits for an answer calls Python, which raises where it is not wanted.
class PythonLook {
  public:
    explicit PythonLook(nb::callable look) : look_(std::move(look)) {}
    void enter() {
        looks_.emplace([this] {
            nb::gil_scoped_acquire lock;
            PyObject* answer = PyErr_CheckSignals() == 0 ? PyObject_CallNoArgs(look_.ptr()) : nullptr;
            if (!answer) keep_raised();
            Py_XDECREF(answer);
            return answer != nullptr;
        });
    }
    void exit(const nb::args&) { looks_.reset(); }

  private:
    nb::callable look_;
    std::optional<LookWhileWaiting> looks_;
};

nb::object array(const std::vector<double>& values, std::initializer_list<std::size_t> shape) {
    auto* data = new double[std::max<std::size_t>(values.size(), 1)];
    std::copy(values.begin(), values.end(), data);
    nb::capsule owner(data, [](void* raw) noexcept { delete[] static_cast<double*>(raw); });
    return nb::cast(nb::ndarray<nb::numpy, double>(data, shape, owner));
}

// None: it failed
nb::object ask_python(Isolated& self, Ask ask, double t, double h, const Numbers& u) {
    if (static_cast<int>(u.shape(1)) != self.inputs())
        throw std::invalid_argument("u has another number of inputs");
    const int count = ask == Ask::python_step ? 1 : self.outputs();
    std::vector<double> answer(static_cast<std::size_t>(count));
    bool good = false;
    {
        nb::gil_scoped_release release;
        good = self.call(ask, t, h, u.data(), static_cast<int>(u.shape(0)), answer.data(), count);
    }
    if (!good) return nb::none();
    return ask == Ask::python_step ? nb::cast(answer[0]) : array(answer, {answer.size()});
}

void bind_client(nb::module_& module) {
    Isolated::interrupted = was_interrupted;
    nb::class_<Isolated, Simulator>(module, "Isolated")
        .def(nb::init<int, int, int, double>())
        .def_static("needed", &Memory::required_size)
        .def("put", [](Isolated& self, const nb::bytes& payload) { return self.put(text(payload)); })
        .def("attach", &Isolated::attach)
        .def("detach", &Isolated::detach)
        .def("wait_opened", &Isolated::wait_opened, nb::call_guard<nb::gil_scoped_release>())
        .def("call",
             [](Isolated& self, const std::string& name, const nb::bytes& question, double limit) {
                 const std::string written = text(question);
                 nb::gil_scoped_release release;
                 return self.call(name.c_str(), written, limit);
             })
        .def("step", [](Isolated& self, double t, double h,
                        const Numbers& u) { return ask_python(self, Ask::python_step, t, h, u); })
        .def("output", [](Isolated& self, double t,
                          const Numbers& u) { return ask_python(self, Ask::python_output, t, 0.0, u); })
        .def("slope", [](Isolated& self, double t,
                         const Numbers& u) { return ask_python(self, Ask::python_slope, t, 0.0, u); })
        .def_prop_ro("payload", [](Isolated& self) { return bytes(self.payload()); })
        .def("reject", &Isolated::reject, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("payload_at", &Isolated::payload_at)
        .def_prop_ro("worded", &Isolated::has_words)
        .def_prop_ro("ended", &Isolated::ended)
        .def_prop_ro("failed_by_end", &Isolated::failed_by_end)
        .def_rw("quiet", &Isolated::quiet)
        .def_prop_ro("end",
                     [](const Isolated& self) {
                         static const char* names[] = {"",     "exited",      "signalled", "vanished",
                                                       "late", "interrupted", "closed",    "malformed"};
                         return names[static_cast<int>(self.end())];
                     })
        .def_prop_ro("code", &Isolated::code)
        .def_prop_ro("took", &Isolated::took)
        .def_prop_ro("starved", &Isolated::starved)
        .def_prop_ro("function", [](const Isolated& self) { return bytes(self.function()); })
        .def_prop_ro("asked", &Isolated::question)
        .def_prop_ro("said", [](const Isolated& self) { return bytes(self.said()); })
        .def_prop_ro("problem", &Isolated::problem);
    nb::class_<PythonLook>(module, "LookWhileWaiting")
        .def(nb::init<nb::callable>())
        .def("__enter__", &PythonLook::enter)
        .def("__exit__", &PythonLook::exit);
    // what a handler, or a look, raised while an answer was waited for
    module.def("give_up_waiting", &Isolated::give_up);
    module.def("take_raised", [] {
        nb::object taken = raised ? nb::steal(raised) : nb::none();
        raised = nullptr;
        return taken;
    });
}

void bind_server(nb::module_& module) {
    nb::class_<Server>(module, "Server")
        .def(nb::init<int, int>())
        // "call", "step", "output" or "slope", to be answered in Python
        .def(
            "serve",
            [](Server& self, Simulator* simulator) {
                Ask ask{};
                {
                    nb::gil_scoped_release release;
                    ask = self.serve(simulator);
                }
                return ask == Ask::python_step     ? "step"
                       : ask == Ask::python_output ? "output"
                       : ask == Ask::python_slope  ? "slope"
                                                   : "call";
            },
            "simulator"_a.none())
        .def_prop_ro("question", [](const Server& self) { return bytes(self.question()); })
        .def_prop_ro("t", [](const Server& self) { return self.channel().span.t; })
        .def_prop_ro("h", [](const Server& self) { return self.channel().span.h; })
        .def_prop_ro("u",
                     [](const Server& self) {
                         const auto rows = static_cast<std::size_t>(self.channel().rows);
                         const auto inputs = static_cast<std::size_t>(self.channel().inputs);
                         return array({self.u(), self.u() + rows * inputs}, {rows, inputs});
                     })
        .def("answer_number",
             [](Server& self, double value) {
                 self.y()[0] = value;
                 self.answer(true);
             })
        .def("answer_numbers",
             [](Server& self, const Flat& values) {
                 if (static_cast<int>(values.size()) != self.channel().outputs)
                     throw std::invalid_argument("another number of outputs");
                 std::copy(values.data(), values.data() + values.size(), self.y());
                 self.answer(true);
             })
        .def("answer",
             [](Server& self, const nb::bytes& value) {
                 if (!self.put(text(value)))
                     throw std::invalid_argument("the answer is too long for an isolated FMU");
                 self.answer(true);
             })
        .def("refuse", [](Server& self, const nb::bytes& words) { self.refuse(text(words)); });
}

}  // namespace

void bind_isolated(nb::module_& module) {
    bind_client(module);
    bind_server(module);
}

}  // namespace hocket
