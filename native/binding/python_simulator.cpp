#include "binding/python_simulator.hpp"

#include <nanobind/ndarray.h>

#include <cmath>

namespace nb = nanobind;
using namespace nb::literals;

namespace hocket {

PythonSimulator::PythonSimulator(nb::object simulator, int rows, int inputs, int outputs, const Clock& clock,
                                 nb::object micro, nb::object event_tick, bool observes, bool places)
    : step_(simulator.attr("step")),
      output_(simulator.attr("output")),
      micro_(std::move(micro)),
      rows_(rows),
      inputs_(inputs),
      outputs_(outputs),
      clock_(&clock),
      slack_(observes ? 0.0 : 1e-9),
      places_(places) {
    if (nb::hasattr(simulator, "slope")) slope_ = simulator.attr("slope");
    if (nb::hasattr(simulator, "save")) save_ = simulator.attr("save");
    if (nb::hasattr(simulator, "restore")) restore_ = simulator.attr("restore");
    if (!event_tick.is_none()) {
        due_ = simulator.attr("due");
        react_ = simulator.attr("react");
        commit_ = simulator.attr("commit");
        if (nb::hasattr(simulator, "space_events")) space_events_ = simulator.attr("space_events");
        event_tick_ = std::move(event_tick);
    }
}

PyObject* PythonSimulator::view(const double* u) {
    View& slot = views_[0].at == u || views_[0].at == nullptr ? views_[0] : views_[1];
    if (slot.at != u || !slot.array.is_valid()) {
        const std::size_t shape[2] = {static_cast<std::size_t>(rows_), static_cast<std::size_t>(inputs_)};
        slot.array = nb::cast(nb::ndarray<nb::numpy, const double>(u, 2, shape, nb::handle()),
                              nb::rv_policy::reference);
        slot.at = u;
    }
    return slot.array.ptr();
}

bool PythonSimulator::keep_exception(Call call, std::int64_t tick) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace) PyException_SetTraceback(value, trace);
    error_ = nb::steal(value);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    failure_.kind = Failure::Kind::raised;
    failure_.call = call;
    failure_.tick = tick;
    return false;
}

nb::object PythonSimulator::take_error() { return std::move(error_); }

bool PythonSimulator::due(std::int64_t& tick) {
    PyObject* told = PyObject_CallNoArgs(due_.ptr());
    if (!told) return keep_exception(Call::due, at_);
    nb::object time = nb::steal(told);
    if (time.is_none()) {
        tick = never_due;
        return true;
    }
    if (PyFloat_CheckExact(time.ptr())) {
        const double seconds = PyFloat_AS_DOUBLE(time.ptr());
        if (seconds == last_seconds_) {  // 0.0 and -0.0 are one time
            tick = last_place_;
            return true;
        }
        if (std::isfinite(seconds)) {
            last_seconds_ = seconds;
            tick = last_place_ = clock_->event_tick(seconds, true);
            return true;
        }
    } else if (time.is(last_due_)) {
        tick = last_tick_;
        return true;
    }
    try {  // it says what is wrong with a time that is none
        nb::object found = event_tick_(time);
        int beyond = 0;
        last_tick_ = PyLong_AsLongLongAndOverflow(found.ptr(), &beyond);
        if (beyond != 0) last_tick_ = beyond < 0 ? -never_due : never_due;  // the ticks of any run
        last_due_ = time;
        tick = last_tick_;
        return true;
    } catch (nb::python_error& error) {
        error.restore();
        return keep_exception(Call::due, at_);
    }
}

bool PythonSimulator::react(std::int64_t tick, int n, const double* u, const std::uint8_t* present,
                            std::uint8_t* shown) {
    at_ = tick;
    try {
        const std::size_t shape[1] = {static_cast<std::size_t>(inputs_)};
        nb::object values = nb::cast(nb::ndarray<nb::numpy, const double>(u, 1, shape, nb::handle()),
                                     nb::rv_policy::reference);
        nb::list flags;
        for (int k = 0; k < inputs_; ++k) flags.append(nb::bool_(present[k] != 0));
        nb::object told = react_(clock_->time(tick), n, values, flags);
        if (told.is_none()) return true;
        const std::size_t count = nb::len(told);
        if (count != static_cast<std::size_t>(outputs_)) {
            PyErr_Format(PyExc_ValueError, "react() returned %zu flags, expected %d, one per output", count,
                         outputs_);
            return keep_exception(Call::react, tick);
        }
        for (int k = 0; k < outputs_; ++k) {
            const int there = PyObject_IsTrue(nb::object(told[k]).ptr());
            if (there < 0) return keep_exception(Call::react, tick);
            shown[k] = there == 1;
        }
        return true;
    } catch (nb::python_error& error) {
        error.restore();
        return keep_exception(Call::react, tick);
    }
}

bool PythonSimulator::commit(bool& again) {
    PyObject* told = PyObject_CallNoArgs(commit_.ptr());
    if (!told) return keep_exception(Call::commit, at_);
    const int truth = PyObject_IsTrue(told);
    Py_DECREF(told);
    again = truth == 1;
    return truth >= 0 || keep_exception(Call::commit, at_);
}

bool PythonSimulator::space_events(std::int64_t tick, double interval) {
    if (!space_events_.is_valid()) return true;
    try {
        space_events_(interval);
        return true;
    } catch (nb::python_error& error) {
        error.restore();
        return keep_exception(Call::space_events, tick);
    }
}

bool PythonSimulator::step(const Span& span, const double* u) {
    const auto [tick, ticks, t, h] = span;
    at_ = tick + ticks;
    PyObject* arguments[4] = {nullptr, PyFloat_FromDouble(t), PyFloat_FromDouble(h), view(u)};
    PyObject* reached =
        PyObject_Vectorcall(step_.ptr(), arguments + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    Py_DECREF(arguments[1]);
    Py_DECREF(arguments[2]);
    if (!reached) return keep_exception(Call::step, tick);
    if (reached == Py_None) {
        Py_DECREF(reached);
        return true;
    }
    const double at = PyFloat_AsDouble(reached);
    Py_DECREF(reached);
    if (at == -1.0 && PyErr_Occurred()) return keep_exception(Call::step, tick);
    const double end = clock_->time(tick + ticks);
    const bool there = std::fabs(at - end) <= slack_ * h + 4.0 * 0x1p-52 * std::fabs(end);
    const std::int64_t place = !there && places_ && at < end ? clock_->event_tick(at, false) : -1;
    // a part of a step that cannot be shorter ends between two places
    if (!there && place != tick + ticks && (place < tick + ticks || ticks > clock_->quantum)) {
        failure_.kind = Failure::Kind::stopped_early;
        failure_.value = at;
        failure_.tick = tick;
        failure_.ticks = ticks;
        return false;
    }
    return true;
}

bool PythonSimulator::evaluate(PyObject* method, Call call, std::int64_t tick, const double* u, double* y) {
    PyObject* arguments[3] = {nullptr, PyFloat_FromDouble(clock_->time(tick)), view(u)};
    PyObject* result =
        PyObject_Vectorcall(method, arguments + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    Py_DECREF(arguments[1]);
    if (!result) return keep_exception(call, tick);
    const bool taken = take_numbers(result, y, outputs_);
    Py_DECREF(result);
    return taken || keep_exception(call, tick);
}

bool PythonSimulator::output(std::int64_t tick, const double* u, double* y) {
    return evaluate(output_.ptr(), Call::output, tick, u, y);
}

bool PythonSimulator::slope(std::int64_t tick, const double* u, double* dy) {
    return evaluate(slope_.ptr(), Call::slope, tick, u, dy);
}

bool PythonSimulator::save(Snapshot& to) {
    try {
        auto state = std::make_shared<State>();
        state->state = save_();
        if (!micro_.is_none() && !to.portable) state->mark = micro_.attr("mark")();
        to.of_its_own = state;
        return true;
    } catch (nb::python_error& error) {
        error.restore();
        return keep_exception(Call::save, 0);
    }
}

bool PythonSimulator::restore(Snapshot& from) {
    try {
        const auto& state = *static_cast<State*>(from.of_its_own.get());
        restore_(state.state);
        if (!micro_.is_none() && !from.portable) micro_.attr("back_to")(state.mark);
        return true;
    } catch (nb::python_error& error) {
        error.restore();
        return keep_exception(Call::restore, 0);
    }
}

void PythonSimulator::settle_rows(const Snapshot* restorable, bool) {
    if (micro_.is_none()) return;
    const auto* state = restorable ? static_cast<const State*>(restorable->of_its_own.get()) : nullptr;
    micro_.attr("settle")(state ? state->mark : nb::none());
}

namespace {

bool wrong_size(Py_ssize_t have, int count) {
    PyErr_Format(PyExc_ValueError, "%zd outputs were returned, expected %d", have, count);
    return false;
}

bool take_one(PyObject* item, double* y) {
    *y = PyFloat_AsDouble(item);
    return !(*y == -1.0 && PyErr_Occurred());
}

bool take_buffer(PyObject* result, double* y, int count) {
    Py_buffer buffer;
    if (PyObject_GetBuffer(result, &buffer, PyBUF_FORMAT | PyBUF_ND | PyBUF_C_CONTIGUOUS) != 0) {
        PyErr_Clear();
        return false;
    }
    const bool doubles = buffer.format && buffer.format[0] == 'd' && buffer.format[1] == 0 &&
                         buffer.len == static_cast<Py_ssize_t>(sizeof(double)) * count;
    if (doubles)
        for (int i = 0; i < count; ++i) y[i] = static_cast<const double*>(buffer.buf)[i];
    PyBuffer_Release(&buffer);
    return doubles;
}

}  // namespace

bool take_numbers(PyObject* result, double* y, int count) {
    if (result == Py_None) {
        PyErr_Format(PyExc_TypeError, "output() returned None, expected %d numbers", count);
        return false;
    }
    if (PyFloat_Check(result) || PyLong_Check(result))
        return count == 1 ? take_one(result, y) : wrong_size(1, count);
    if (PyList_Check(result) || PyTuple_Check(result)) {
        const Py_ssize_t have = PySequence_Fast_GET_SIZE(result);
        if (have != count) return wrong_size(have, count);
        PyObject** items = PySequence_Fast_ITEMS(result);
        for (int i = 0; i < count; ++i)
            if (!take_one(items[i], y + i)) return false;
        return true;
    }
    if (PyObject_CheckBuffer(result) && take_buffer(result, y, count)) return true;
    // anything else that NumPy can read as numbers
    try {
        nb::object flat =
            nb::module_::import_("numpy").attr("asarray")(nb::handle(result), "dtype"_a = "float64");
        flat = flat.attr("reshape")(-1).attr("tolist")();
        return take_numbers(flat.ptr(), y, count);
    } catch (nb::python_error& error) {
        error.restore();
        return false;
    }
}

}  // namespace hocket
