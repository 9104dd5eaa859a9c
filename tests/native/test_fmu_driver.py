"""FMUs driven without Python, under AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer.

Everything that hocket's compiled code does to an FMU is done here by `fmu_driver.cpp`; the FMUs are compiled
with the sanitizers too, so that what is handed to them is looked at as well. FMUs that crash, abort, exit or
hang take the driver with them by their nature: they are tests of isolation.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hocket.simulators.fmu.live import driver_setup
from hocket.simulators.fmu.ports import group_calls
from hocket.simulators.fmu.recipe import Fmu
from systems import ROOT

NATIVE = ROOT / "native"
SANITIZERS = (
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
    "-fno-omit-frame-pointer",
    "-g",
)
FLAGS = ("-std=c++20", "-O0", "-ffp-contract=off", *SANITIZERS, f"-I{NATIVE}")
ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=1:exitcode=23:detect_stack_use_after_return=1:check_initialization_order=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "LSAN_OPTIONS": f"suppressions={Path(__file__).parent / 'lsan.supp'}:print_suppressions=0",
}
TYPES = (
    "real", "float32", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "boolean"
)  # fmt: skip

# fmt: off
GOOD = (
    "first", "second", "gain", "lag", "ball", "types", "arrays", "ramp", "vanderpol", "strict", "chatty",
    "bare", "single", "liar",
)
# fmt: on


def sanitized_builder():
    """Return tests/fmus/build.py as a module of its own, whose FMUs have the sanitizers in them."""
    spec = importlib.util.spec_from_file_location("sanitized_build", ROOT / "tests" / "fmus" / "build.py")
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up by name
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.FLAGS = (*module.FLAGS, *SANITIZERS)
    return module


BUILD = sanitized_builder()


def sources():
    """Return what the driver is made of: the FMU classes, and what they include."""
    found = {path for path in (NATIVE / "fmu").glob("fmu*.cpp") if "nanobind" not in path.read_text()}
    waiting = list(found)
    while waiting:
        for name in re.findall(r'#include "([\w/]+)\.hpp"', waiting.pop().read_text()):
            for path in (NATIVE / f"{name}.hpp", *NATIVE.glob(f"{name}*.cpp")):
                if path not in found and "nanobind" not in path.read_text():
                    found.add(path)
                    waiting.append(path)
    return sorted(path for path in found if path.suffix == ".cpp")


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """Compile the driver in two pieces: the headers that all sources include take longest."""
    folder = tmp_path_factory.mktemp("driver")
    paths = [*sources(), Path(__file__).parent / "fmu_driver.cpp"]

    def compiled(name, members):
        source, target = folder / f"{name}.cpp", folder / f"{name}.o"
        source.write_text("".join(f'#include "{path}"\n' for path in members))
        subprocess.run(["g++", *FLAGS, "-c", source, "-o", target], check=True)
        return target

    calling = [path for path in paths if path.name.startswith("fmu")]
    others = [path for path in paths if path not in calling]
    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compiled, ("calling", "others"), (calling, others)))
    subprocess.run(
        ["g++", *SANITIZERS, *objects, "-ldl", "-pthread", "-o", folder / "fmu_driver"], check=True
    )
    return folder / "fmu_driver"


@pytest.fixture(scope="session")
def fmu(tmp_path_factory):
    """Return a function that builds an FMU once."""
    folder = tmp_path_factory.mktemp("fmus")
    built = {}

    def path(name, version, **options):
        key = name, version, *sorted(options)
        if key not in built:
            place = folder / f"{len(built)}-fmi{version}"
            built[key] = BUILD.build(name, version, folder=place, **options)
        return built[key]

    return path


class Outcome:
    """What the driver printed."""

    def __init__(self, result):
        self.status = result.returncode
        self.lines = result.stdout.splitlines()
        self.report = result.stderr

    def all(self, word):
        return [line.removeprefix(word).strip() for line in self.lines if line.startswith(word)]

    def numbers(self, word):
        return [[float(number) for number in line.split()] for line in self.all(word)]

    @property
    def end(self):
        return next(line for line in self.lines if re.match("done|failed|cannot", line))


@pytest.fixture(scope="session")
def drive(driver, tmp_path_factory):
    """Return a function that lets the driver do things; there must be no report of any sanitizer."""
    folder = tmp_path_factory.mktemp("jobs")

    def run(model, *actions, u=None, h=0.1, clean=True, more=()):
        rows = [[0.5 if port.type == "real" else 1.0 for port in model.inputs]] if u is None else u
        lines = [*job(model), *more, f"h {h}"]
        lines += ["u " + " ".join(map(repr, row)) for row in rows]
        lines += [f"do {action}" for action in actions]
        file = folder / "job.txt"
        file.write_text("\n".join(lines) + "\n")
        outcome = Outcome(
            subprocess.run(
                [driver, file],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=300,
                env={**os.environ, **ENVIRONMENT},
            )
        )
        if clean:
            assert outcome.report == ""
            assert outcome.status == 0
        return outcome

    return run


def job(model):
    """Return the lines that tell the driver of an FMU what hocket tells its compiled code."""
    major, used = model.description.major, model.interface_used
    known = driver_setup(model, used.identifier)
    yield f"version {major}"
    yield f"library {model.binary}"
    if major == 1:
        yield f"prefix {used.identifier}_"
    for word in ("name", "token", "resources"):
        yield f"{word} {getattr(known, word)}"
    for word in (
        "logging",
        "events",
        "early",
        "feeds_through",
        "variable",
        "interpolates",
        "inputs",
        "outputs",
    ):
        yield f"{word} {int(getattr(known, word))}"
    layout = model.port_layout
    for word, ranges in (("set", layout.input_ranges), ("get", layout.output_ranges)):
        for told, group in zip(getattr(known, word), group_calls(model.description, ranges), strict=True):
            references, places = told.references, told.places
            each = len(places) // len(references)  # arrays of one FMU have one size here
            assert each * len(references) == len(places), group
            ends = [
                f"{reference}:{','.join(map(str, places[k * each : (k + 1) * each]))}"
                for k, reference in enumerate(references)
            ]
            yield f"{word} {TYPES[told.type]} {' '.join(ends)}"
    for word in ("continuous", "discrete"):
        yield f"{word} {' '.join(map(str, getattr(known, word)))}"
    for word in ("texts_in", "texts_out"):
        for text in getattr(known, word):
            yield f"{word.replace('texts', 'text')} {text.reference} {int(text.binary)}"
    for setting in model.settings.settings:
        for line in puts(setting):
            yield f"{'structural' if setting.stage == 'structural' else 'put'} {line}"


def puts(setting):
    each = len(setting.values) // len(setting.references)
    for k, reference in enumerate(setting.references):
        values = setting.values[k * each : (k + 1) * each]
        if setting.type in ("string", "binary"):
            value = values[0] if isinstance(values[0], str) else values[0].decode("latin-1")
            yield f"{'text' if setting.type == 'string' else 'binary'} {reference} {value}"
        else:
            wide = setting.type in ("int64", "uint64", "enumeration")
            kind = {"integer": "int32", "enumeration": "int64"}.get(setting.type, setting.type)
            # the bits of a large unsigned number are those of a negative one, as live.py has it
            numbers = " ".join(repr((int(v) + 2**63) % 2**64 - 2**63 if wide else float(v)) for v in values)
            yield f"{'whole' if wide else 'numbers'} {kind} {reference} {numbers}"


def each_version(*names):
    return [pytest.param(name, v, id=f"{name}-{v}") for name in names for v in BUILD.versions(name)]


# good ones


@pytest.mark.parametrize(("name", "version"), each_version(*GOOD))
def test_a_good_fmu_leaves_nothing_behind(name, version, fmu, drive):
    model = Fmu(fmu(name, version), isolate=False)
    outcome = drive(
        model,
        "start", "output", "output", "steps 20", "fast 20", "close", "close",  # closed by hand, twice
        "start", "fast 5", "steps 5", "output",  # and once more, closed with the object
        "start", "output",  # started again in the middle, left before the first step
    )  # fmt: skip
    assert outcome.end == "done"
    once, _, slow, fast, *_ = outcome.numbers("y")
    assert len(once) == len(slow) == len(fast) == len(model.outputs)


@pytest.mark.parametrize(("name", "version"), each_version(*GOOD))
def test_every_way_to_give_up_early_leaves_nothing_behind(name, version, fmu, drive):
    model = Fmu(fmu(name, version), isolate=False)
    for actions in (
        [],
        ["close"],
        ["start"],
        ["start", "close", "make", "make"],
        ["start", "ready", "close"],
    ):
        assert drive(model, *actions).end == "done"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_both_ways_to_step_agree(version, fmu, drive):
    for name in ("first", "second", "gain", "lag", "vanderpol"):
        model = Fmu(fmu(name, version))
        slow = drive(model, "start", "output", "steps 50").numbers("y")[-1]
        assert drive(model, "start", "output", "fast 50").numbers("y")[-1] == slow


def test_all_versions_agree(fmu, drive):
    for name in ("first", "second", "gain", "lag", "ball", "ramp", "vanderpol"):
        ends = {
            tuple(drive(Fmu(fmu(name, v)), "start", "output", "steps 7").numbers("y")[-1]) for v in (1, 2, 3)
        }
        if name == "ball":  # FMI 3 stops at the events
            ends = {tuple(round(value, 12) for value in end) for end in ends}
        assert len(ends) == 1, name


@pytest.mark.parametrize(("name", "version"), each_version("types"))
def test_values_of_every_type_travel(name, version, fmu, drive):
    wide = {"p_uint64": 2**64 - 1, "p_int64": -(2**63), "u_int64": 3} if version == 3 else {}
    model = Fmu(fmu(name, version), {"p_string": "ahoy, ", "p_int": -(2**31), "p_bool": False, **wide})
    ones = [[1.0] * len(model.inputs)]
    outcome = drive(model, "start", "output", "texts", "texts", u=ones, more=["logging 1"])
    assert outcome.end == "done"
    assert outcome.all("text")[0] == "ahoy, there"


@pytest.mark.parametrize("size", [1, 3, 4, 8])
def test_arrays_of_any_size(size, fmu, drive):
    A = [[i * size + j + 1.0 for j in range(size)] for i in range(size)]
    model = Fmu(fmu("arrays", 3), n=size, A=A)
    u = [float(k + 1) for k in range(size)]
    y = [sum(a * b for a, b in zip(row, u, strict=True)) for row in A]
    outcome = drive(model, "start", "output", "fast 2", "steps 2", u=[u])
    assert outcome.numbers("y") == [y, y, y]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_inputs_that_move_during_a_step(version, fmu, drive):
    # u = 1 + 2 s + 3 s^2 over [0, 1/2]: its integral is 1/2 + 1/4 + 1/8
    model = Fmu(fmu("ramp", version))
    outcome = drive(model, "start", "output", "fast 1", "slope", "steps 1", u=[[1.0], [2.0], [3.0]], h=0.5)
    assert outcome.numbers("y")[0] == [0.0]
    assert outcome.numbers("y")[1] == pytest.approx([0.875], abs=1e-15)
    assert outcome.numbers("y")[2] == pytest.approx([1.75], abs=1e-15)
    assert outcome.numbers("dy") == [[1.0 + 2.0 * 0.5 + 3.0 * 0.25]]


# bad ones

SAID = {
    "fails": "step 6 at 0.5 s: the valve is stuck",
    "fatal": "step 6 at 0.5 s: the valve is gone",
    "discards": "cannot step over 0.55 s",
}
DO_STEP = {1: "fmiDoStep", 2: "fmi2DoStep", 3: "fmi3DoStep"}
EXIT = {1: "fmiInitializeSlave", 2: "fmi2ExitInitializationMode", 3: "fmi3ExitInitializationMode"}


@pytest.mark.parametrize("how", ["fast", "steps"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_step_that_fails(version, how, fmu, drive):
    failed = f"failed: {how} at step 5, {DO_STEP[version]} returned"
    end = drive(Fmu(fmu("fails", version)), "start", "output", f"{how} 20").end
    assert end == f"{failed} Error ({SAID['fails']})"
    end = drive(Fmu(fmu("fatal", version)), "start", "output", f"{how} 20").end
    assert end == f"{failed} Fatal ({SAID['fatal']})"


@pytest.mark.parametrize("how", ["fast", "steps"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_step_that_is_discarded(version, how, fmu, drive):
    outcome = drive(Fmu(fmu("discards", version), at=0.55), "start", "output", f"{how} 20")
    # FMI 3: without early return a discarded step has not begun
    reached = 0.5 if version == 3 else 0.55
    said = f"the step was not finished ({SAID['discards']})"
    assert outcome.end == f"failed: {how} at step 5, reached {reached:.17g}, {said}"


@pytest.mark.parametrize("how", ["fast", "steps"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_output_that_is_no_number(version, how, fmu, drive):
    outcome = drive(Fmu(fmu("nan", version)), "start", "output", f"{how} 20")
    # the fast way counts a step that shows no number as not made
    assert re.fullmatch(rf"failed: {how} at step [45], outputs -?nan", outcome.end)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_fmu_that_refuses(version, fmu, drive):
    outcome = drive(Fmu(fmu("refuses", version)), "start", "output")
    said = "no licence for refuses (5 of 5 in use)"
    assert outcome.end == f"failed: start at step 0, it cannot be instantiated ({said})"
    assert f"log 3 logStatusError {said}" in outcome.lines


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_fmu_whose_token_is_another(version, fmu, drive):
    outcome = drive(Fmu(fmu("lag", version)), "start", more=["token {stolen}"])
    assert re.match(
        r"failed: start at step 0, it cannot be instantiated \(the token is \{stolen\}", outcome.end
    )


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_initialisation_that_fails(version, fmu, drive):
    for actions in (["ready"], ["output", "ready"], ["output", "fast 3"], ["steps 3"]):
        outcome = drive(Fmu(fmu("badinit", version)), "start", *actions)
        said = "no steady state found after 50 iterations: residual 0.25"
        assert outcome.end.endswith(f" at step 0, {EXIT[version]} returned Error ({said})")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_function_that_is_missing(version, fmu, drive):
    prefix = "gutless_" if version == 1 else ""
    outcome = drive(Fmu(fmu("gutless", version)), "start")
    assert re.fullmatch(rf"cannot: .*gutless\.so has no function {prefix}{DO_STEP[version]}", outcome.end)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_functions_that_are_not_needed_may_be_missing(version, fmu, drive):
    outcome = drive(Fmu(fmu("bare", version)), "start", "output", "fast 5", "rewind 1")
    assert outcome.end == "failed: rewind at step 5, it cannot save its state"


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("value", [2.5, 3e9, float("nan"), float("inf")])
def test_a_number_that_does_not_fit_is_not_handed_over(version, value, fmu, drive):
    model = Fmu(fmu("types", version))
    u = [value if port.name == "u_int" else 0.0 for port in model.inputs]
    outcome = drive(model, "start", "output", u=[u])
    assert re.search(r"does not fit the type of input number 2", outcome.end)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_library_that_is_none(version, fmu, drive, tmp_path):
    (tmp_path / "other.so").write_bytes(b"\x7fELF and no more")
    outcome = drive(Fmu(fmu("lag", version)), "start", more=[f"library {tmp_path / 'other.so'}"])
    assert outcome.end.startswith("cannot: ")
    assert "other.so" in outcome.end


@pytest.mark.parametrize("version", [1, 2, 3])
def test_ten_thousand_messages_and_more_do_not_pile_up(version, fmu, drive):
    outcome = drive(Fmu(fmu("chatty", version)), "start", "output", "fast 12000")
    logs = outcome.all("log")
    assert len(logs) == 10001
    assert logs[0] == "1 logStatusWarning step 1 at 0 s: u = 0.500, all is well"
    assert "2000 more messages were dropped" in logs[-1]


# saving and restoring


def rewinding(*names):
    return [case for case in each_version(*names) if case.values[1] > 1]


@pytest.mark.parametrize(
    ("name", "version"), rewinding("first", "second", "lag", "ball", "types", "arrays", "ramp", "vanderpol")
)
def test_ten_thousand_rewinds_take_no_memory(name, version, fmu, drive):
    outcome = drive(Fmu(fmu(name, version)), "start", "output", "steps 2", "rewind 10000")
    assert outcome.end == "done"
    assert not outcome.all("it goes on differently")
    # one state, used again and again
    assert outcome.numbers("states") == [[1.0]]
    before, after = outcome.numbers("resident")[0]
    # the sanitizer's quarantine of freed memory may still fill: hocket itself takes nothing
    assert after - before < 4000, "kB"


@pytest.mark.parametrize(
    ("name", "version"), rewinding("first", "lag", "ball", "types", "arrays", "vanderpol")
)
def test_many_states_at_once(name, version, fmu, drive):
    outcome = drive(
        Fmu(fmu(name, version)), "start", "output", "many 50", "many 20", "close", "start", "many 3"
    )
    assert outcome.end == "done"
    assert not outcome.all("it goes on differently")
    assert outcome.numbers("states") == [[50.0], [20.0], [3.0]]


@pytest.mark.parametrize("version", [2, 3])
def test_a_state_that_was_not_all_is_found_out(version, fmu, drive):
    outcome = drive(Fmu(fmu("liar", version)), "start", "output", "steps 2", "rewind 3")
    what = "the same step from t = 0.2 s ended at"
    assert what in outcome.end
    assert "it says that it can save and restore its state" in outcome.end


@pytest.mark.parametrize("version", [2, 3])
def test_going_back_after_a_failed_step(version, fmu, drive):
    outcome = drive(Fmu(fmu("discards", version), at=0.05), "start", "output", "save", "steps 1")
    assert "the step was not finished" in outcome.end
    outcome = drive(
        Fmu(fmu("fails", version)),
        "start",
        "output",
        "save",
        "steps 5",
        "restore",
        "steps 5",
        "restore",
        "fast 9",
    )
    assert outcome.end.startswith("failed: fast at step 5")


@pytest.mark.parametrize(
    "reuse",
    [
        pytest.param(False, id="elsewhere"),
        pytest.param(True, id="in the same place"),
    ],
)
@pytest.mark.parametrize("version", [2, 3])
def test_a_state_outlives_its_instance(version, reuse, fmu, drive, monkeypatch):
    if reuse:  # freed memory is used again at once: a new state lies where the old one was
        now = f"{ENVIRONMENT['ASAN_OPTIONS']}:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
        monkeypatch.setitem(ENVIRONMENT, "ASAN_OPTIONS", now)
    outcome = drive(Fmu(fmu("lag", version)), "start", "output", "steps 2", "stale")
    assert outcome.end == "done"
    assert not outcome.all("an old state was restored")
    assert not outcome.all("two states are one")
    assert not outcome.all("it goes on differently")


@pytest.mark.parametrize("version", [2, 3])
def test_a_state_of_another_instance_is_refused(version, fmu, drive):
    outcome = drive(Fmu(fmu("lag", version)), "start", "output", "foreign")
    assert outcome.end == "done"
    assert not outcome.all("a state of another instance was restored")


@pytest.mark.parametrize("version", [2, 3])
def test_inputs_may_come_with_other_powers_of_time_after_a_rewind(version, fmu, drive):
    outcome = drive(Fmu(fmu("ramp", version)), "start", "output", "rows", u=[[1.0], [2.0], [3.0]])
    assert outcome.end == "done"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_boolean_is_true_or_false(version, fmu, drive):
    model = Fmu(fmu("types", version))
    u = [2.0 if port.name == "u_bool" else 0.0 for port in model.inputs]
    outcome = drive(model, "start", "output", u=[u])
    assert "does not fit the type" in outcome.end


def test_a_number_too_large_for_32_bits_is_refused(fmu, drive):
    model = Fmu(fmu("types", 3))
    u = [1e300 if port.name == "u_float32" else 0.0 for port in model.inputs]
    assert "does not fit the type" in drive(model, "start", "output", u=[u]).end
