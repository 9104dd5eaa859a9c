"""FMI 3 co-simulation with event mode: time events, inputs that jump, texts."""

import numpy as np
import pytest

from fmus.build import build
from hocket.simulators.fmu.recipe import Fmu


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("events")


def fmu(name, folder, **how):
    return Fmu(build(name, 3, folder=folder), **how)


def stepped(simulator, count, u, h=0.1):
    """Return the outputs after each of so many steps."""
    simulator.start(0.0)
    simulator.output(0.0, u(0.0))
    rows = []
    for k in range(count):
        simulator.step(h * k, h, u(h * k))
        rows.append(simulator.output(h * (k + 1), u(h * k)))
    simulator.close()
    return np.array(rows)


def held(t):
    return np.array([[0.0, t]])


@pytest.mark.parametrize("isolate", [False, True])
def test_a_time_event_that_was_told_of_is_a_place_to_stop_at(folder, isolate):
    rows = stepped(fmu("sampled", folder, isolate=isolate).open(), 10, held)
    assert rows[:, 2] == pytest.approx([0, 0, 0.25, 0.25, 0.5, 0.5, 0.5, 0.75, 0.75, 1.0])
    assert rows[:, 1] == pytest.approx([0, 0, 0.2, 0.2, 0.4, 0.4, 0.4, 0.7, 0.7, 0.9])


def test_equal_steps_reach_it_late(folder):
    rows = stepped(fmu("rigid", folder).open(), 10, held)
    assert rows[:, 2] == pytest.approx([0, 0, 0.3, 0.3, 0.5, 0.5, 0.5, 0.8, 0.8, 1.0])


def test_the_next_event_is_part_of_the_state(folder):
    simulator = fmu("sampled", folder).open()
    simulator.start(0.0)
    simulator.output(0.0, held(0.0))
    simulator.step(0.0, 0.1, held(0.0))
    state = simulator.save()
    for _ in range(3):
        simulator.step(0.1, 0.1, held(0.1))
        simulator.step(0.2, 0.1, held(0.2))
        assert simulator.output(0.3, held(0.2)) == pytest.approx([0.0, 0.2, 0.25])
        simulator.restore(state)
    simulator.close()


def test_a_real_that_is_discrete_is_set_in_event_mode(folder):
    rows = stepped(fmu("sampled", folder).open(), 4, lambda t: np.array([[1.0 if t > 0.15 else 0.0, 0.0]]))
    assert rows[:, 0] == pytest.approx([0, 0, 1, 1])


def test_outputs_are_those_after_the_event_however_often_they_are_asked_for(folder):
    simulator = fmu("sampled", folder).open()
    simulator.start(0.0)
    simulator.output(0.0, np.array([[0.0, 0.0]]))
    simulator.step(0.0, 0.1, np.array([[0.0, 0.0]]))
    seen = [simulator.output(0.1, np.array([[5.0, 0.0]]))[0] for _ in range(3)]
    assert seen == [5.0, 5.0, 5.0]
    simulator.close()


def test_ports_say_that_they_jump(folder):
    model = fmu("sampled", folder)
    assert [(port.name, port.held) for port in model.inputs] == [("u", True), ("c", False)]


def test_texts_arrive_in_event_mode(folder):
    model = fmu("sampled", folder, s="hello")
    simulator = model.open()
    simulator.start(0.0)
    simulator.output(0.0, held(0.0))
    simulator.step(0.0, 0.1, held(0.0))
    said = model.texts[1].index("said")
    assert simulator.text(said) == b"hello"
    simulator.set_text(0, b"bye")
    assert simulator.text(said) == b"bye"
    state = simulator.save()
    simulator.set_text(0, b"back")
    simulator.restore(state)
    simulator.set_text(0, b"back")
    assert simulator.text(said) == b"back"
    simulator.close()
