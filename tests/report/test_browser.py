"""Reports opened in a browser: the script runs, and what it shows is what the scenario holds."""

from fractions import Fraction as F

import numpy as np
import pytest
from matplotlib.image import imread

from command_line import good
from hocket import Composite, GaussSeidel, Jacobi, Python, Scenario, StateSpace, open_run, run
from hocket.files.error_estimate import ErrorEstimate, PortEstimate, write_estimate
from hocket.model.ports import Port
from hocket.report import write_report
from report.browser import opened, painted

EVIL = "x<img/src=x/onerror=alert(1)>&\"'"
LAG = StateSpace([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=[Port(EVIL, "<b>m")])


def pair(step, names=("c", "d")):
    first, second = names
    wires = {f"{first}.u": f"{second}.{EVIL}", f"{second}.u": "u", "y": f"{first}.{EVIL}"}
    return Composite(Scenario(dict.fromkeys(names, LAG), wires, ["u"], ["y"]), step, GaussSeidel())


@pytest.fixture(scope="module")
def nested(tmp_path_factory):
    """Levels of 0.4, 0.1 and 0.05 s; two estimates of errors; names that would break a page."""
    folder = tmp_path_factory.mktemp("nested")
    inner = pair(F(1, 20), ("e", "f"))
    middle = Scenario({"c": LAG, "d": inner}, {"c.u": "d.y", "d.u": "u", "y": f"c.{EVIL}"}, ["u"], ["y"])
    whole = Scenario(
        {"a": LAG, "b": Composite(middle, F(1, 10), Jacobi(outputs="stale"))},
        {"a.u": "b.y", "b.u": f"a.{EVIL}"},
    )
    made = run(Composite(whole, F(2, 5)), stop=F(8), folder=folder / "run", name="</title><script>evil()")
    found = [
        PortEstimate(made[port], np.full(len(made[port]), size), 1.0)
        for port, size in ((f"a.{EVIL}", 0.5), (f"b.c.{EVIL}", 0.25))
    ]
    write_estimate(made.path, ErrorEstimate(tuple(found), ("a <doubt> & more",), 1))
    file = write_report(made)
    script = """
      const input = document.getElementById("filter");
      input.value = "b.d.e.*"; input.dispatchEvent(new Event("input"));
      document.body.dataset.filtered = document.querySelectorAll(".chart").length;
      input.value = ""; input.dispatchEvent(new Event("input"));
      const svg = document.querySelector(".chart svg"), box = svg.getBoundingClientRect();
      svg.setPointerCapture = () => {};
      const at = (kind, part, more) => svg.dispatchEvent(new PointerEvent(kind, { button: 0,
        clientX: box.left + LEFT + part * (box.width - LEFT - RIGHT), clientY: box.top + 50, ...more }));
      at("pointermove", 0.5);
      document.body.dataset.pointed = document.querySelector(".chart .value").textContent;
      at("pointerdown", 0.25); at("pointermove", 0.5); at("pointerup", 0.5);
      document.body.dataset.zoomed = view.map((t) => t.toFixed(3)).join(" ");
      at("pointerdown", 0.5, { shiftKey: true }); at("pointermove", 0.25); at("pointerup", 0.25);
      document.body.dataset.moved = view.map((t) => t.toFixed(3)).join(" ");
      at("dblclick", 0.5);
      document.body.dataset.whole = view.join(" ");
      const level = document.querySelector('.level[data-path="b"]'), tall = level.offsetHeight;
      const wires = [...document.querySelectorAll("path.wire")];
      level.querySelector("summary").click();
      document.body.dataset.folded = level.offsetHeight < tall / 2;
      document.body.dataset.routed = wires.every((wire) => wire.getAttribute("d"));
    """
    return made, file, opened(file, folder, script)


def test_the_script_runs_without_errors(nested):
    _, _, page = nested
    assert page.body["data-ready"] == "yes"
    assert "data-error" not in page.body


def test_hostile_names_are_text(nested):
    _, file, page = nested
    assert not [tag for tag, _ in page.elements if tag == "img"]
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert EVIL in page.text
    assert "</title><script>evil()" in page.text
    assert "a <doubt> & more" in page.text
    text = file.read_text(encoding="utf-8")
    assert EVIL not in text
    assert "<script>evil" not in text
    for reference in ("http:", "https:", "//cdn", "@import", "url(h"):
        assert reference not in text


def test_boxes_lanes_and_charts_are_those_of_the_scenario(nested):
    made, _, page = nested
    assert [box["data-path"] for box in page.having("level", tag="details")] == ["", "b", "b.d"]
    simulators = ["a", "b.c", "b.d.e", "b.d.f"]
    assert sorted(box["data-path"] for box in page.having("sim")) == simulators
    assert sorted(name["data-lane"] for name in page.having("name")) == sorted(["", "b", "b.d", *simulators])
    assert len(page.having("chart")) == len(made.ports) == 6
    # a <-> b; in b: d -> c, in -> d, c -> out; in d: f -> e, in -> f, e -> out
    assert len(page.having("wire")) == 2 + 3 + 3
    # the steps of a: 1, of c: 4, of e and f: 8 each; of levels: 1, 1 and 4; one more is in the key
    bars = page.having("bar", tag="g")
    assert len([bar for bar in bars if "level" not in bar["class"].split()]) == 1 + 4 + 8 + 8 + 1
    assert len(page.having("bar", "level")) == 1 + 1 + 4
    assert len(page.having("frame", "substep")) == 4 + 8
    assert not page.having("frame", "gap")
    assert page.body["data-routed"] == "true"


def test_bands_are_drawn_where_there_is_an_estimate(nested):
    _, _, page = nested
    bands = page.having("band", tag="path")
    assert len(bands) == 2
    assert all(band["d"].startswith("M") for band in bands)
    assert "0.5 <b>m in" in page.text


def test_a_narrow_window_scrolls_down_only(nested, tmp_path):
    _, file, _ = nested
    script = "document.body.dataset.over = document.documentElement.scrollWidth - window.innerWidth;"
    page = opened(file, tmp_path, script, width=500)
    assert page.body["data-over"] == "0"
    assert "data-error" not in page.body


def test_the_page_is_painted_light_and_dark(nested, tmp_path):
    _, file, _ = nested
    light, dark = (imread(painted(file, tmp_path, dark))[..., :3] for dark in (False, True))
    assert light.mean() > 0.8
    assert dark.mean() < 0.3
    assert light.std() > 0.05
    assert dark.std() > 0.05


def test_filter_zoom_move_and_fold(nested):
    _, _, page = nested
    assert page.body["data-filtered"] == "1"
    assert page.body["data-pointed"].endswith(" ± 0.5 at 4 s")
    assert page.body["data-zoomed"] == "2.000 4.000"
    assert page.body["data-moved"] == "2.500 4.500"
    assert page.body["data-whole"] == "0 8"
    assert page.body["data-folded"] == "true"


class Bursting:
    inputs = ()
    outputs = ("level [m]",)

    def start(self, t):
        self.level = 0.0

    def output(self, t):
        return [self.level]

    def step(self, t, h, u):
        if t >= 0.5:
            raise RuntimeError("the tank <b>bursts</b>")
        self.level += h


def test_a_failed_run_has_a_page_with_its_error_first(tmp_path):
    tank = Composite(Scenario({"tank": Python(Bursting)}), F(1, 10))
    with pytest.raises(Exception, match="bursts"):
        run(tank, stop=1, folder=tmp_path / "run")
    page = opened(write_report(open_run(tmp_path / "run")), tmp_path)
    assert "data-error" not in page.body
    first, *_ = page.having("card")
    assert {"bad", "wide"} <= set(first["class"].split())
    assert page.text.index("failed at 0.5 of 1 s") < page.text.index("the tank <b>bursts</b>")
    assert page.text.index("the tank <b>bursts</b>") < page.text.index("Recorded ports")
    assert len(page.having("chart")) == 1
    assert "estimates it from runs with shorter steps" in page.text


def test_forty_simulators(tmp_path):
    lag = StateSpace([[-2.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u [V]"], outputs=["y [V]"])
    names = [f"room_{number:02}" for number in range(40)]
    wires = {f"{name}.u": f"{names[number - 1]}.y" for number, name in enumerate(names)}
    made = run(
        Composite(Scenario(dict.fromkeys(names, lag), wires), F(1, 10)), stop=2, folder=tmp_path / "run"
    )
    said = good("report", tmp_path / "run", "--out", tmp_path / "rooms.html")
    assert said.startswith(f"wrote {tmp_path / 'rooms.html'} (")
    page = opened(tmp_path / "rooms.html", tmp_path)
    assert "data-error" not in page.body
    assert len(page.having("sim")) == len(page.having("wire")) == 40
    assert len(page.having("name")) == 41
    counts = [len(page.having("mark", kind)) - 1 for kind in ("feed", "read", "record")]  # one is in the key
    assert counts == [40, 40, 1]
    assert len(page.having("chart")) == 12
    assert f"12 of {len(made.ports)} ports" in page.text
    assert "stable: spectral radius " in page.text
