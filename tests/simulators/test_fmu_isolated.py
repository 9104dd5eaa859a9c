"""FMUs in processes of their own: the same bits, and whatever they do, Python and the rows live on."""

import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from hocket.execution import session
from hocket.simulators.fmu.recipe import Fmu
from hocket.testing import check_simulator
from systems import ENGINES


def children():
    """The processes that this one has started, zombies too, and their names."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = stat.read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if int(rest.split()[1]) == os.getpid():
            found[int(stat.parent.name)] = name
    return found


@pytest.fixture(autouse=True)
def none_left():
    before = children()
    yield
    gc.collect()
    assert children().keys() <= before.keys()


def rows(composite, stop, **options):
    run = hk.run(composite, stop=stop, **options)
    return {port: np.asarray(run[port].values) for port in run.ports}


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[port], other[port]) for port in one)


def alone(model, step=0.1, **inputs):
    return hk.Composite(hk.Scenario({"m": model}, inputs), step=step)


# the same results


@pytest.mark.parametrize("version", [1, 2, 3])
def test_bits_of_two_masses(tmp_path, version):
    paths = [build(name, version, folder=tmp_path) for name in ("first", "second")]

    def masses(isolate, extrapolation):
        first, second = (Fmu(path, isolate=isolate) for path in paths)
        wires = {"a.x": "b.x", "a.v": "b.v", "b.force": "a.force"}
        scenario = hk.Scenario({"a": first, "b": second}, wires)
        return hk.Composite(scenario, step=0.01, orchestrator=hk.GaussSeidel(), extrapolation=extrapolation)

    for extrapolation in (hk.Hold(), hk.Polynomial(1)):
        expected = rows(masses(False, extrapolation), 1)
        for engine in ENGINES:
            assert same(rows(masses(True, extrapolation), 1, engine=engine), expected)


def test_bits_of_inputs_that_move_and_of_slopes(tmp_path):
    path = build("ramp", 2, folder=tmp_path)

    def ring(isolate):
        models = {"a": Fmu(path, isolate=isolate, y0=1.0), "b": Fmu(path, isolate=isolate)}
        wires = {"a.u": ("b.y", hk.Hermite()), "b.u": ("a.y", hk.Polynomial(2))}
        return hk.Composite(hk.Scenario(models, wires), step=0.05)

    expected = rows(ring(False), 1)
    for engine in ENGINES:
        assert same(rows(ring(True), 1, engine=engine), expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_bits_of_threads(tmp_path, engine):
    path = build("lag", 2, folder=tmp_path)

    def ring(isolate):
        names = ["a", "b", "c"]
        models = {name: Fmu(path, isolate=isolate, y0=1.0 + k) for k, name in enumerate(names)}
        wires = {f"{name}.u": f"{names[k - 1]}.y" for k, name in enumerate(names)}
        return hk.Composite(hk.Scenario(models, wires), step=0.01)

    assert same(rows(ring(True), 1, engine=engine, threads=2), rows(ring(False), 1))


@pytest.mark.parametrize(("method", "options"), [("rk4", {"step": "5 ms"}), ("adaptive", {})])
def test_bits_of_model_exchange(tmp_path, method, options):
    path = build("vanderpol", 3, folder=tmp_path)

    def oscillator(isolate):
        return alone(Fmu(path, interface="model-exchange", isolate=isolate, method=method, **options))

    expected = rows(oscillator(False), 2)
    for engine in ENGINES:
        assert same(rows(oscillator(True), 2, engine=engine), expected)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_types_and_texts(tmp_path, version):
    path = build("types", version, folder=tmp_path)
    answers = []
    for isolate in (False, True):
        model = Fmu(path, isolate=isolate, p_string="grüße ", p_int=4)
        simulator = model.open()
        simulator.start(0.0)
        u = np.array([[1.0 + (port.type == "enumeration") for port in model.inputs]])
        simulator.output(0.0, u)
        simulator.ready()
        simulator.set_text(0, b"Welt")
        assert simulator.step(0.0, 0.1, u) == 0.1
        answers.append((simulator.output(0.1, u).tobytes(), simulator.text(0)))
        simulator.close()
    assert answers[0] == answers[1]
    assert answers[0][1] == "grüße Welt".encode()


def test_arrays(tmp_path):
    path = build("arrays", 3, folder=tmp_path)
    model = Fmu(path, isolate=True, n=2, A=[[1.0, 2.0], [3.0, 4.0]])
    simulator = model.open()
    simulator.start(0.0)
    assert simulator.output(0.0, np.array([[1.0, 10.0]])).tolist() == [21.0, 43.0]
    simulator.close()


def test_laws(tmp_path):
    check_simulator(Fmu(build("lag", 2, folder=tmp_path), isolate=True))


# one instance per process


@pytest.mark.parametrize("engine", ENGINES)
def test_those_that_want_a_process_of_their_own_get_it(tmp_path, engine):
    model = Fmu(build("single", 2, folder=tmp_path))
    assert model.is_isolated
    scenario = hk.Scenario({"a": model, "b": model}, {"a.u": "b.y", "b.u": "a.y"})
    run = hk.run(hk.Composite(scenario, step=0.1), stop=1, engine=engine)
    assert run["a.y"].values[-1] == run["b.y"].values[-1] == pytest.approx(1.0)


# misbehaviour

CAUSES = {
    "crashes": "segmentation fault (SIGSEGV)",
    "aborts": "aborted (SIGABRT)",
    "exits": "exit code 3",
}
PREFIX = {1: "fmi", 2: "fmi2", 3: "fmi3"}


def failed(model, tmp_path, engine="native", step=0.1):
    """The error of a run, and the rows that were kept."""
    with pytest.raises(hk.SimulatorError) as caught:
        hk.run(alone(model, step), stop=1, engine=engine, folder=tmp_path / "run")
    return caught.value, hk.open_run(tmp_path / "run")


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("name", CAUSES)
def test_processes_that_end(tmp_path, name, version):
    model = Fmu(build(name, version, folder=tmp_path), isolate=True)
    error, run = failed(model, tmp_path, ENGINES[version % 2])
    assert str(error) == (
        f"its process ended: {CAUSES[name]} in {PREFIX[version]}DoStep\n  where:    `m`, step() at t = 0.5 s"
    )
    assert error.__notes__ == [f"rows up to t = 0.5 s are kept in {tmp_path / 'run'}"]
    assert run.status == "failed"
    assert run["m.y"].values[-1] == pytest.approx(0.5)


def test_a_step_without_end_is_waited_for_as_long_as_the_limit_and_not_much_longer(tmp_path):
    simulator = Fmu(build("hangs", 2, folder=tmp_path), isolate=True, time_limit="2 s").open()
    u = np.zeros((1, len(simulator.model.inputs)))
    simulator.start(0.0)
    for step in range(5):
        simulator.step(0.1 * step, 0.1, u)
    begin = time.monotonic()
    with pytest.raises(hk.SimulatorError, match=r"a step took longer than 2 s"):
        simulator.step(0.5, 0.1, u)
    assert 2.0 <= time.monotonic() - begin < 6.0
    simulator.close()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="processes are starved by means of Linux")
def test_a_process_without_a_processor_is_waited_for(tmp_path):
    """Its step takes some milliseconds, and begins when the other process on its processor is gone."""
    simulator = Fmu(build("vanderpol", 2, folder=tmp_path), isolate=True, time_limit="300 ms").open()
    u = np.zeros((1, len(simulator.model.inputs)))
    simulator.start(0.0)
    simulator.output(0.0, u)
    process, core = simulator._process.pid, min(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, {{{core}}})\nprint(flush=True)\nwhile True: pass"
    other = subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE)

    def release():
        os.sched_setscheduler(process, os.SCHED_OTHER, os.sched_param(0))
        other.kill()

    assert other.stdout is not None
    with other:
        other.stdout.readline()
        os.sched_setaffinity(process, {core})
        os.sched_setscheduler(process, os.SCHED_IDLE, os.sched_param(0))
        timer = threading.Timer(0.8, release)
        timer.start()
        simulator.step(0.0, 0.1, u)
        timer.join()
    simulator.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_steps_without_end(tmp_path, engine):
    model = Fmu(build("hangs", 2, folder=tmp_path), isolate=True, time_limit="300 ms")
    error, run = failed(model, tmp_path, engine)
    assert str(error) == (
        "a step took longer than 0.3 s: fmi2DoStep did not return\n"
        "  where:    `m`, step() at t = 0.5 s\n"
        "  try:      if it may take that long, a greater `time_limit` of the FMU"
    )
    assert run["m.y"].values[-1] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fails", "fmi2DoStep returned Error: step 6 at 0.5 s: the valve is stuck"),
        ("discards", "`m` stopped at 0.45 s instead of 0.5 s"),
        ("nan", "`m.y` is nan"),
        ("refuses", "it cannot be instantiated: no licence for"),
        ("gutless", "its binary cannot be loaded:"),
    ],
)
def test_what_fmus_report_is_reported(tmp_path, name, message):
    path = build(name, 2, folder=tmp_path)
    at = 0.45 if name == "discards" else 0.5
    texts = []
    for isolate in (True, False):
        for engine in ENGINES if isolate else ("native",):
            with pytest.raises(hk.SimulatorError) as caught:
                hk.run(alone(Fmu(path, isolate=isolate, at=at)), stop=1, engine=engine)
            texts.append(caught.value.faults[0].what)
    assert all(text.startswith(message) for text in texts)


def test_a_state_that_is_not_restored(tmp_path):
    simulator = Fmu(build("liar", 2, folder=tmp_path), isolate=True).open()
    u = np.ones((1, 1))
    simulator.start(0.0)
    simulator.output(0.0, u)
    state = simulator.save()
    simulator.step(0.0, 0.1, u)
    simulator.step(0.1, 0.1, u)
    with pytest.raises(hk.SimulatorError, match="it says that it can save and restore its state, but"):
        simulator.restore(state)
    simulator.start(0.0)
    with pytest.raises(hk.SimulatorError, match="the state was saved before the last start"):
        simulator.restore(state)
    simulator.close()


def test_a_process_that_is_killed_can_be_started_anew(tmp_path):
    simulator = Fmu(build("lag", 2, folder=tmp_path), isolate=True).open()
    u = np.ones((1, 1))
    simulator.start(0.0)
    simulator.step(0.0, 0.1, u)
    os.kill(simulator._process.pid, signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(hk.SimulatorError) as caught:
            simulator.step(0.1, 0.1, u)
        assert caught.value.faults[0].what == "its process ended: killed (SIGKILL) during a step"
        assert caught.value.faults[0].hint == "the system does this when memory runs out"
    simulator.start(0.0)
    simulator.step(0.0, 0.1, u)
    assert simulator.output(0.1, u).tolist() == [0.1]
    simulator.close()
    simulator.close()
    with pytest.raises(hk.SimulatorError, match="it is closed"):
        simulator.step(0.1, 0.1, u)


def test_last_words(tmp_path):
    """What the FMU said in the call that ended it, and how it ended in another call than a step."""
    source = r"""
    #include <stdlib.h>
    #include <unistd.h>
    typedef void (*Log)(void *, const char *, int, const char *, const char *, ...);
    typedef struct { Log log; } Calls;
    static Log say;
    void *fmi2Instantiate(const char *n, int k, const char *g, const char *r, const Calls *c, int v, int l)
        { (void)n; (void)k; (void)g; (void)r; (void)v; (void)l; say = c->log; return &say; }
    void fmi2FreeInstance(void *m) { (void)m; }
    #define DO(name) int name(void *m) { (void)m; return 0; }
    DO(fmi2SetupExperiment) DO(fmi2EnterInitializationMode) DO(fmi2ExitInitializationMode)
    DO(fmi2SetReal) DO(fmi2DoStep) DO(fmi2SetInteger) DO(fmi2SetBoolean) DO(fmi2SetString)
    int fmi2Terminate(void *m) { (void)m; for (;;) ; }
    int fmi2GetReal(void *m) { (void)m; say(0, "x", 3, "c", "%s is %d", "the end", 7); _exit(9); }
    """
    (tmp_path / "odd.c").write_text(source)
    library = tmp_path / "odd.so"
    subprocess.run(["gcc", "-shared", "-fPIC", tmp_path / "odd.c", "-o", library], check=True)
    simulator = Fmu(build("lag", 2, folder=tmp_path, binary=library.read_bytes()), isolate=True).open()
    simulator.start(0.0)
    with pytest.raises(hk.SimulatorError) as caught:
        simulator.output(0.0, np.zeros((1, 1)))
    words = "its process ended: exit code 9 while its outputs were evaluated: the end is 7"
    assert caught.value.faults[0].what == words
    simulator.close()

    simulator = Fmu(simulator.model.path, isolate=True, time_limit="100 ms").open()
    simulator.start(0.0)
    simulator.step(0.0, 0.1, np.zeros((1, 1)))
    with pytest.raises(hk.SimulatorError, match=r"closing it took longer than 0\.1 s: fmi2Terminate did"):
        simulator.close()


# logs


@pytest.mark.parametrize("engine", ENGINES)
def test_logs_arrive(tmp_path, caplog, engine):
    with caplog.at_level(logging.INFO, logger="hocket.fmu"):
        hk.run(alone(Fmu(build("chatty", 2, folder=tmp_path), isolate=True)), stop=1, engine=engine)
    words = [record.getMessage() for record in caplog.records if "step" in record.getMessage()]
    assert len(words) == 10
    assert words[0] == "m: step 1 at 0 s: u = 0.000, all is well"
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_too_many_words(tmp_path, caplog):
    model = Fmu(build("chatty", 2, folder=tmp_path), isolate=True)
    with caplog.at_level(logging.INFO, logger="hocket.fmu"):
        hk.run(alone(model, step=0.0001), stop=2)
    said = len([record for record in caplog.records if "all is well" in record.getMessage()])
    dropped = [record.getMessage() for record in caplog.records if "dropped" in record.getMessage()]
    lost = sum(int(words.split(": ")[1].split()[0]) for words in dropped)
    assert said + lost == 20000


# states


def test_states_are_freed(tmp_path, monkeypatch):
    trace = tmp_path / "trace"
    monkeypatch.setenv("HOCKET_TEST_TRACE", str(trace))
    simulator = Fmu(build("lag", 2, folder=tmp_path, trace=True), isolate=True).open()
    u = np.ones((1, 1))
    simulator.start(0.0)
    simulator.output(0.0, u)
    kept = simulator.save()
    simulator.step(0.0, 0.1, u)
    for _ in range(3):
        states = [simulator.save() for _ in range(10)]
        del states
    gc.collect()
    simulator.restore(kept)
    simulator.step(0.0, 0.1, u)
    assert simulator.output(0.1, u).tolist() == [0.1]
    simulator.save()
    assert trace.read_text().count("fmi2FreeFMUstate") >= 6
    late = simulator.save()
    simulator.close()
    del late, kept
    assert trace.read_text().count("fmi2FreeInstance") == 1


def test_nothing_leaks(tmp_path):
    model = Fmu(build("lag", 2, folder=tmp_path), isolate=True)

    def cycle():
        simulator = model.open()
        simulator.start(0.0)
        simulator.step(0.0, 0.1, np.ones((1, 1)))
        simulator.close()

    def held():
        maps = Path("/proc/self/maps").read_text().count("memfd:hocket")
        return len(list(Path("/proc/self/fd").iterdir())), maps, children().keys()

    cycle()
    gc.collect()
    before = held()
    for _ in range(5):
        cycle()
    model.open()  # forgotten, and never waited for
    gc.collect()
    assert held() == before


def test_opened_on_a_thread_that_ends(tmp_path):
    """The kernel tells a process of the end of the thread that started it: its parent may go on."""
    opened = []
    model = Fmu(build("lag", 2, folder=tmp_path), isolate=True)

    def on_thread():
        opened.append(model.open())
        opened[0].start(0.0)

    thread = threading.Thread(target=on_thread)
    thread.start()
    thread.join()
    assert opened[0].step(0.0, 0.1, np.ones((1, 1))) == 0.1
    opened[0].close()


# the keyboard, and the end of the parent

SCRIPT = """
import sys
import hocket as hk
from hocket.execution import session
from hocket.simulators.fmu.recipe import Fmu
session.PATIENCE = float(sys.argv[7])
class Telling(session.StopRequest):
    def is_overdue(self):
        print("within a step, asked" if self.asked.is_set() else "within a step", flush=True)
        return super().is_overdue()
session.StopRequest = Telling
models = {f"m{k}": Fmu(sys.argv[1], isolate=True, at=float(sys.argv[5 + k])) for k in range(2)}
level = hk.Composite(hk.Scenario(models, {"m0.u": "m1.y", "m1.u": "m0.y"}), step=0.1)
run = hk.run(level, stop=1, folder=sys.argv[2], engine=sys.argv[3], threads=int(sys.argv[4]),
             progress=lambda t, stop: print(t, flush=True))
"""


def hanging(tmp_path, engine, threads=1, ats=(0.5, 0.5), patience=session.PATIENCE):
    command = [sys.executable, "-c", SCRIPT, build("hangs", 2, folder=tmp_path), tmp_path / "run", engine]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [*map(str, (*command, threads, *ats, patience))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    wait_for(process, "0.5", "within a step")
    return process


def wait_for(process, *lines):
    """Wait until these lines were printed, one behind the other."""
    last = []
    for line in process.stdout:
        last = [*last, line.strip()][-len(lines) :]
        if last == list(lines):
            return
    raise AssertionError(process.stderr.read())


def children_of(process):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # others come and go
            if stat.read_text().rpartition(")")[2].split()[1] == str(process.pid):
                found.append(stat.parent)
    return found


each_way_to_hang = pytest.mark.parametrize(
    ("engine", "threads", "ats"),
    [
        ("native", 1, (0.5, 0.5)),
        ("interpreter", 1, (0.5, 0.5)),
        ("native", 2, (0.5, 0.5)),
        ("native", 2, (0.5, 9.0)),  # one thread hangs, the other waits for it
        ("native", 2, (9.0, 0.5)),
    ],
)


def stop_once(process, folder, number):
    young = children_of(process)
    assert len(young) == 2
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")
    assert not any(map(Path.exists, young))
    run = hk.open_run(folder)
    assert (run.status, run.info["within_step"]) == ("stopped", True)
    assert run["m0.y"].values[-1] == pytest.approx(0.5)


@each_way_to_hang
@pytest.mark.usefixtures("heeds_ctrl_c")
def test_control_c_ends_a_step_without_end(tmp_path, engine, threads, ats):
    """The process of what hangs is ended, the run returns well, and its rows are kept."""
    stop_once(hanging(tmp_path, engine, threads, ats), tmp_path / "run", signal.SIGINT)


def test_a_request_to_terminate_ends_a_step_without_end(tmp_path):
    stop_once(hanging(tmp_path, "native"), tmp_path / "run", signal.SIGTERM)


@each_way_to_hang
@pytest.mark.usefixtures("heeds_ctrl_c")
def test_two_times_control_c_ends_a_step_without_end(tmp_path, engine, threads, ats):
    """The second one ends it at once: the step is never asked to end for having had its time."""
    process = hanging(tmp_path, engine, threads, ats, patience=1000.0)
    process.send_signal(signal.SIGINT)
    wait_for(process, "within a step, asked")  # two signals that wait to be heard are one
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
    run = hk.open_run(tmp_path / "run")
    assert run.status == "stopped"
    assert run["m0.y"].values[-1] == pytest.approx(0.5)


def test_no_child_outlives_its_parent(tmp_path):
    process = hanging(tmp_path, "native")
    young = children_of(process)
    assert len(young) == 2
    process.kill()
    process.communicate()
    for _ in range(100):
        left = [folder for folder in young if folder.exists()]
        if not left:
            break
        time.sleep(0.02)
    assert not left


class Waiting:
    """Waits for an FMU that does not answer, and breaks once the run does not want the answer any more."""

    outputs = ("y",)

    def __init__(self, file):
        self.fmu = Fmu(file, isolate=True, at=0.0).open()

    def start(self, t):
        self.fmu.start(t)
        self.fmu.ready()

    def output(self, t):
        return 0.0

    def step(self, t, h, u):
        try:
            self.fmu.step(t, h, np.zeros((1, len(self.fmu.model.inputs))))
        except BaseException:
            self.fmu.close()
            raise RuntimeError("it broke") from None


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.usefixtures("heeds_ctrl_c")
def test_what_fails_after_a_request_to_stop_is_told(tmp_path, engine):
    path = str(build("hangs", 2, folder=tmp_path))
    inner = hk.Composite(hk.Scenario({"waiting": hk.Python(Waiting, file=path)}), "100 ms")
    asked = []

    def ask(*_):
        if not asked:
            asked.append(os.kill(os.getpid(), signal.SIGINT))

    for level in (inner, hk.Composite(hk.Scenario({"inner": inner}), "100 ms")):
        asked.clear()
        with pytest.raises(hk.SimulatorError, match="it broke"):
            hk.run(level, 1, engine=engine, progress=ask)
