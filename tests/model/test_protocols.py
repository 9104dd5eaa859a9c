"""Optional capabilities: the page lists what the modules declare; asking costs next to nothing."""

import inspect
import re
from fractions import Fraction
from typing import Protocol

import pytest

import hocket as hk
from hocket.model import composite, protocols, simulator_protocols
from systems import ROOT

ALWAYS = {"Simulator", "Model", "Extrapolator", "Orchestrator"}
"""What is not optional."""
PARTS = {"Variable", "VariableTable"}
"""What a description is made of."""


def optional_protocols():
    return {
        name: each
        for module in (simulator_protocols, protocols, composite)
        for name, each in vars(module).items()
        if isinstance(each, type) and Protocol in each.__bases__ and each.__module__ == module.__name__
        if name not in ALWAYS | PARTS
    }


def signature(protocol, name):
    member = inspect.getattr_static(protocol, name, None)
    return f"{name}({', '.join([*inspect.signature(member).parameters][1:])})" if callable(member) else name


def test_the_page_and_the_modules_name_the_same_capabilities():
    page = (ROOT / "docs" / "capabilities.md").read_text().partition("## Optional methods")[2]
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `")]
    listed = {name.strip(" `"): re.findall("`([^`]*)`", members) for name, members in rows}
    declared = {
        name: [signature(each, member) for member in protocols.members_of(each)]
        for name, each in optional_protocols().items()
    }
    assert listed == declared


@pytest.mark.parametrize("protocol", optional_protocols().values(), ids=lambda each: each.__name__)
def test_every_protocol_has_its_contract(protocol):
    text = inspect.getdoc(protocol)
    assert text.count(". ") + text.count(".\n") >= 1 or protocol.__module__ == composite.__name__, text


def test_one_module_hands_on_every_name():
    names = {
        name
        for module in (simulator_protocols, protocols)
        for name, each in vars(module).items()
        if not name.startswith("_") and getattr(each, "__module__", "") == module.__name__
    }
    assert names - {"Asked"} | {"Array", "Value"} == set(protocols.__all__)


def test_what_a_model_lacks_is_none():
    bare = hk.Gain(2.0)
    assert (protocols.period_of(bare), protocols.step_of(bare), protocols.declared_energy(bare)) == (
        None,
    ) * 3
    assert protocols.text_ports(bare) == ((), ())
    assert protocols.bookkeeping_ports(bare) == frozenset()
    assert protocols.wrapped_model(bare) is None
    assert protocols.origin_of(bare) == ""
    assert protocols.described_variables(bare) == {}
    assert not protocols.is_isolated(bare)
    assert protocols.state_count(bare) == 0


def test_a_step_that_is_a_method_is_not_a_step_of_its_own():
    class Both:
        def step(self, t, h, u):
            return t + h

    assert protocols.step_of(Both()) is None
    assert protocols.step_of(hk.Composite(hk.Scenario({"a": hk.Gain(1.0)}), "10 ms")) == Fraction(1, 100)


def test_capabilities_are_handed_on_as_a_whole():
    class Half:
        def save(self):
            return None

    class Target:
        pass

    target = Target()
    protocols.hand_on(Half(), target, (protocols.RollbackSimulator,))
    assert not protocols.provides(target, protocols.RollbackSimulator)
    assert vars(target) == {}
