"""Steps of SSPs: one for all levels that have none of their own, and what other tools ask for."""

from fractions import Fraction

import pytest

from command_line import good
from files.test_ssp import MASSES, archive, component, fmu, gains, level, ssd, system
from hocket.errors import ScenarioError
from hocket.execution.run import run
from hocket.files import toml
from hocket.files.ssp import read_ssp, write_ssp
from hocket.model.composite import levels

pytestmark = pytest.mark.usefixtures("fresh_cache")

GAIN = component("g", "resources/gain.fmu")
RUN = '<ssd:DefaultExperiment stopTime="1"/>'
ANNOTATIONS = "<ssd:Annotations>{}</ssd:Annotations>"
OSP = ANNOTATIONS.format(
    '<ssc:Annotation type="com.opensimulationplatform"><{0}>'
    '<FixedStepAlgorithm baseStepSize="{1}"/></{0}></ssc:Annotation>'
)
HINT = ANNOTATIONS.format(
    '<ssc:Annotation type="com.opensimulationplatform"><StepSizeHint value="{}"/></ssc:Annotation>'
)
OMS = ANNOTATIONS.format(
    '<ssc:Annotation type="org.openmodelica"><Annotations><SimulationInformation>{}'
    "</SimulationInformation></Annotations></ssc:Annotation>"
)
MASTER = OMS.format('<FixedStepMaster description="oms-ma" stepSize="{}" relativeTolerance="1e-4"/>')
SOLVER = OMS.format('<VariableStepSolver description="cvode" initialStepSize="1e-6" maximumStepSize="{}"/>')


def inside(name, *, after="", elements=GAIN):
    return system(elements, after=after, name=name)


def steps(experiment):
    return {path.removesuffix("."): each.step for path, each in levels(experiment.composite)}


def test_one_step_reaches_all_levels_that_have_none_of_their_own(tmp_path):
    own = inside("own", after=level('step = "2 ms"'))
    tree = system(inside("inner", elements=GAIN + inside("deep")) + own)
    experiment = gains(tmp_path, tree, RUN, binary=True)
    long, short = Fraction(1, 10), Fraction(1, 500)
    assert steps(experiment) == {"": long, "inner": long, "inner.deep": long, "own": short}
    assert run(experiment, step="20 ms").info["status"] == "finished"
    changed = experiment.composite.with_changes(step="20 ms")
    assert [each.step for _, each in levels(changed)] == [Fraction(1, 50)] * 3 + [short]


@pytest.mark.parametrize("ending", [".ssp", ".toml"])
def test_a_level_without_a_step_of_its_own_has_none_in_files_either(tmp_path, ending):
    tree = system(
        inside("inner", elements=MASSES) + inside("own", elements=MASSES, after=level("step = 0.01"))
    )
    first = read_ssp(archive(tmp_path, ssd(tree, RUN)))
    file = tmp_path / f"again{ending}"
    (write_ssp if ending == ".ssp" else toml.write)(first, file)
    again = (read_ssp if ending == ".ssp" else toml.read)(file)
    assert steps(again) == steps(first)
    assert [each.inherits_step for _, each in levels(again.composite)] == [False, True, False]
    if ending == ".toml":
        shown = good("plan", file, "--step", "50 ms")
        assert steps(toml.read(file))["inner"] == Fraction(1, 10)
        assert "inner: one step of 50 ms" in shown


def test_the_default_step_suits_the_steps_of_levels_inside(tmp_path):
    tree = system(GAIN + inside("own", after=level('step = "30 ms"')))
    experiment = gains(tmp_path, tree, '<ssd:DefaultExperiment stopTime="0.9"/>')
    assert steps(experiment) == {"": Fraction(9, 100), "own": Fraction(3, 100)}
    told = "a multiple of the 30 ms that `own` steps by inside, in place of 0.1 s, which `g` asks for"
    assert f"the SSP tells no step: it is 90 ms, {told}" in experiment.notes


def test_a_step_inside_an_fmu_is_not_shortened_but_the_run(tmp_path):
    files = {"resources/gain.fmu": fmu("gain", 3, stepSize="0.01", fixedInternalStepSize="0.03")}
    experiment = read_ssp(archive(tmp_path, ssd(system(GAIN), RUN), files))
    assert (experiment.composite.step, experiment.stop) == (Fraction(3, 100), Fraction(99, 100))
    assert experiment.notes[:2] == (
        "the SSP tells no step: it is 30 ms, a multiple of the 30 ms that `g` steps by inside, "
        "in place of 10 ms, which `g` asks for",
        "the run stops at 0.99 s: the last that steps of 30 ms reach before 1 s",
    )


def test_the_only_step_that_an_fmu_makes_is_not_shortened(tmp_path):
    told = {"stepSize": "0.03", "canHandleVariableCommunicationStepSize": "false"}
    experiment = gains(tmp_path, system(GAIN), RUN, **told)
    assert (experiment.composite.step, experiment.stop) == (Fraction(3, 100), Fraction(99, 100))


def test_steps_inside_several_fmus_have_a_common_multiple(tmp_path):
    own = {"a": "0.004", "b": "0.006"}
    files = {
        f"{name}.fmu": fmu("gain", 3, stepSize=None, fixedInternalStepSize=each) for name, each in own.items()
    }
    tree = "".join(component(name, f"{name}.fmu") for name in own)
    experiment = read_ssp(
        archive(tmp_path, ssd(system(tree), '<ssd:DefaultExperiment stopTime="6"/>'), files)
    )
    assert experiment.composite.step == Fraction(12, 1000)


@pytest.mark.parametrize("around", ["Algorithm", "SimulationInformation"])
def test_the_step_that_osp_keeps_is_taken(tmp_path, around):
    run_told = f'<ssd:DefaultExperiment stopTime="1">{OSP.format(around, "0.04")}</ssd:DefaultExperiment>'
    experiment = gains(tmp_path, system(GAIN + inside("inner")), run_told)
    assert set(steps(experiment).values()) == {Fraction(1, 25)}
    assert experiment.notes[0].startswith("an annotation of OSP says how the SSP is run: its step is 40 ms")
    assert not any("not read" in note or "tells no step" in note for note in experiment.notes)


def test_the_hint_of_a_component_counts_in_place_of_what_its_fmu_asks_for(tmp_path):
    tree = system(component("g", "resources/gain.fmu", HINT.format("0.05")))
    assert gains(tmp_path, tree, RUN).composite.step == Fraction(1, 20)


def test_steps_that_omsimulator_keeps_are_taken(tmp_path):
    inner = inside("fast", after=MASTER.format("0.004")) + inside("slow", after=MASTER.format("0.5"))
    tree = system(GAIN + inner + inside("solved", after=SOLVER.format("0.003")), after=MASTER.format("0.01"))
    experiment = gains(tmp_path, tree, RUN)
    # levels inside stop where the level around them does
    expected = {"": "0.01", "fast": "1/300", "slow": "0.01", "solved": "0.0025"}
    assert steps(experiment) == {path: Fraction(step) for path, step in expected.items()}
    notes = "\n".join(experiment.notes)
    assert "an annotation of OMSimulator says how `root` is run: its step is 10 ms" in notes
    assert "how `solved` is run, by `cvode` with steps of up to 3 ms: here the step is fixed" in notes


def test_annotations_of_other_tools_that_make_no_sense_are_left_out_with_a_note(tmp_path):
    for wrong in ("fast", "-1", "0", "nan", "inf"):
        experiment = gains(tmp_path, system(GAIN, after=MASTER.format(wrong)), RUN)
        assert experiment.composite.step == Fraction(1, 10)
        assert f"the stepSize of an annotation is `{wrong}`: it is left out" in "\n".join(experiment.notes)


def test_the_annotation_of_hocket_wins(tmp_path):
    after = level('step = "20 ms"').replace("</ssd:Annotations>", "") + MASTER.format("0.01").removeprefix(
        "<ssd:Annotations>"
    )
    experiment = gains(tmp_path, system(GAIN, after=after), RUN)
    assert experiment.composite.step == Fraction(1, 50)


def test_a_step_that_osp_keeps_and_that_does_not_divide_the_run_ends_it_earlier(tmp_path):
    run_told = f'<ssd:DefaultExperiment stopTime="1">{OSP.format("Algorithm", "0.3")}</ssd:DefaultExperiment>'
    experiment = gains(tmp_path, system(GAIN), run_told)
    assert (experiment.composite.step, experiment.stop) == (Fraction(3, 10), Fraction(9, 10))


def test_a_step_that_does_not_suit_a_level_with_its_own_is_refused(tmp_path):
    tree = system(GAIN + inside("own", after=level('step = "2 ms"')))
    experiment = gains(tmp_path, tree, RUN, binary=True)
    with pytest.raises(ScenarioError, match="the step 2 ms of `own` does not divide the step 5 ms around it"):
        run(experiment, step="5 ms")


def test_a_longest_step_is_shortened_to_divide_the_run(tmp_path):
    experiment = gains(tmp_path, system(GAIN, after=SOLVER.format("0.0015")), RUN)
    assert (experiment.composite.step, experiment.stop) == (Fraction(1, 667), 1)
