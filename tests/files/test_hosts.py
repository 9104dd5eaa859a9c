"""Hosts in files: what is written is read back, and every fault is told with its line."""

import pytest

from hocket.errors import FileError
from hocket.files.toml import dumps, loads
from hocket.files.toml.codec import schema
from hocket.model.experiment import Experiment
from hocket.model.hosts import HEADER, Hosts, Link
from systems import EXAMPLES

EXAMPLE = (EXAMPLES / "two_hosts.toml").read_text()


def test_the_example_is_read_and_written():
    experiment = loads(EXAMPLE)
    hosts = experiment.composite.scenario.hosts
    assert hosts == Hosts({"plant": ["left"], "lab": ["right"]}, Link("2 ms", 1e6))
    assert hosts.between("plant", "lab").header == HEADER == 40
    text = dumps(experiment)
    assert loads(text).composite == experiment.composite
    assert dumps(loads(text)) == text


def test_links_of_some_pairs_are_kept():
    links = {("plant", "lab"): Link("1/3 s", header=0), ("lab", "plant"): Link(bandwidth=125.0)}
    composite = loads(EXAMPLE).composite
    hosts = Hosts({"plant": ["left"], "lab": ["right"]}, None, links)
    made = composite.with_changes(scenario=composite.scenario.with_changes(hosts=hosts))
    text = dumps(Experiment(made))
    assert '"plant to lab"' in text
    assert loads(text).composite == made
    assert loads(text).composite.scenario.hosts.between("lab", "plant").bandwidth == 125.0


@pytest.mark.parametrize(("old", "new", "at", "said"), [
    ('lab = ["right"]', 'lab = ["rihgt"]', "lab =", "there is no model `rihgt`"),
    ('lab = ["right"]', 'lab = ["left"]', "lab =", "`left` is on `plant` and `lab`"),
    ('lab = ["right"]', 'lab = "right"', "lab =", "a list of texts"),
    ('lab = ["right"]', "lab = []", "lab =", "`lab` has no models"),
    ("bandwidth = 1e6", "bandwidth = 0", "link =", "above 0"),
    ('latency = "2 ms"', 'latency = "soon"', "link =", "a duration"),
    ('latency = "2 ms"', 'latency = "-1 ms"', "link =", "`latency` cannot be '-1 ms'"),
    ("bandwidth", "bandwith", "link =", "did you mean `bandwidth`"),
    ("link = {", 'links = { "plant" = {} }\nlink = {', "links =", "two hosts"),
])  # fmt: skip
def test_faults_are_told_with_their_line(old, new, at, said):
    assert old in EXAMPLE
    text = EXAMPLE.replace(old, new, 1)
    line = next(number for number, each in enumerate(text.splitlines(), 1) if each.startswith(at))
    with pytest.raises(FileError) as raised:
        loads(text)
    assert said in str(raised.value)
    assert f"line {line}" in str(raised.value)


def test_the_schema_knows_hosts_and_stand_ins():
    whole = schema()
    assert "hosts" in whole["properties"]
    names = [
        each["properties"]["type"]["const"]
        for each in whole["$defs"]["model"]["anyOf"]
        if "properties" in each
    ]
    assert "stand-in" in names
