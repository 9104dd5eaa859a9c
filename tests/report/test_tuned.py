"""The page of a search, opened in a browser: what is drawn, pointed at and chosen is what was judged."""

import json
import math
from fractions import Fraction as F

import pytest
from matplotlib.image import imread

from hocket import Composite, Jacobi, Scenario
from hocket.files.toml.line_changes import line_changes, scenario_tables
from hocket.model.experiment import Experiment
from hocket.report.tuning_page import changed_lines, tuned_page, write_tuning_page
from hocket.search.tune.objectives import Objective
from hocket.search.tune.space import apply_choices, parse_space
from hocket.search.tune.tuning_result import TuningResult
from report.browser import opened, painted
from systems import LAG, two_masses

NAN = math.nan


def judged(composite, over, goals, number, limits=(), now=None):
    """Return what a search would, with numbers made up by a function of a point's values."""
    chosen = parse_space(composite, over)
    points = tuple(chosen.points())
    numbers = tuple(number(chosen.values(point)) for point in points)
    wanted = tuple(Objective(name, limit=dict(limits).get(name)) for name in goals)
    return TuningResult(composite, chosen, wanted, len(goals), points, numbers, now or numbers[0], F(10))


@pytest.fixture(scope="module")
def many():
    """Ten thousand points whose front is known: rho = h, delta = 1 / h + alpha, so alpha = 0."""
    return judged(
        two_masses("Control21", 8.9),
        {"two.F.alpha": "0:1.1:100", "step": "1:10:100"},
        ("rho", "delta"),
        lambda values: (values["step"] / 10.0, 1.0 / values["step"] + values["two.F.alpha"]),
        now=(0.89, 0.71),
    )


@pytest.fixture(scope="module")
def page(many, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    file = write_tuning_page(many, folder / "front.html", Experiment(many.composite, name="two <masses>"))
    script = """{
      const body = document.body.dataset, svg = document.querySelector("#plane svg");
      const box = svg.getBoundingClientRect();
      svg.setPointerCapture = () => {};
      const at = (kind, x, y) => svg.dispatchEvent(
        new PointerEvent(kind, { button: 0, clientX: box.left + x, clientY: box.top + y }));
      const texts = (query) => [...document.querySelectorAll(query)].map((one) => one.textContent).join("|");
      const rows = [...document.querySelectorAll("#front tbody tr")];
      const x_of = () => Number(document.querySelector("circle.front").getAttribute("cx"));
      body.seen = document.querySelectorAll("circle.front").length;
      body.stars = document.querySelectorAll("path.now").length;
      body.proposed = document.querySelector("#chosen h3").textContent;
      const third = document.querySelectorAll("circle.front")[3];
      const x = Number(third.getAttribute("cx")), y = Number(third.getAttribute("cy"));
      at("pointermove", x + 1, y - 1);
      body.tip = document.getElementById("tip").textContent;
      at("pointerdown", x, y); at("pointerup", x, y);
      body.chosen = document.getElementById("chosen").textContent;
      body.lines = texts("#chosen .diff span");
      body.row = rows.findIndex((row) => row.classList.contains("selected"));
      document.getElementById("plane").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
      body.next = document.querySelector("#chosen h3").textContent;
      rows[7].click();
      body.clicked = document.querySelector("#chosen h3").textContent;
      at("pointerleave", 0, 0);
      const before = x_of();
      at("pointerdown", 200, 100); at("pointermove", 400, 300); at("pointerup", 400, 300);
      body.zoomed = x_of() < before;
      at("dblclick", 300, 200);
      body.whole = x_of() === before;
      for (const [id, value] of [["across", 2], ["up", 3], ["shade", 0]]) {
        const select = document.getElementById(id);
        select.value = value; select.dispatchEvent(new Event("change"));
      }
      document.getElementById("far").click();
      body.heads = texts("#plane text.head");
      const pen = document.querySelector("#plane canvas").getContext("2d");
      const inked = (x, y) => pen.getImageData(x, y, 12, 12).data.some((v, k) => k % 4 === 3 && v > 0);
      body.inked = [inked(300, 250), inked(20, 250)].join(" ");
    }"""
    return file, opened(file, folder, script)


def test_the_script_runs_and_marks_now_front_and_proposed(many, page):
    _, made = page
    assert made.body["data-ready"] == "yes"
    assert "data-error" not in made.body
    assert len(many.front) == 100
    assert made.body["data-seen"] == "100"
    assert made.body["data-stars"] == "1"
    assert made.body["data-proposed"] == f"row {many.knee} of the front, proposed"
    assert "10,000 couplings judged · 100 on the front" in made.text
    assert "two <masses>" in made.text


def test_pointing_tells_the_choices(page):
    _, made = page
    step = 1.0 + 3.0 * 9.0 / 99.0
    assert made.body["data-tip"].startswith("row 3 of the front")
    assert f"step {step:.6g} s" in made.body["data-tip"]
    assert "two.F.alpha 0" in made.body["data-tip"]


def test_clicking_shows_the_changed_lines(page):
    _, made = page
    lines = made.body["data-lines"].split("|")
    assert lines[0].startswith("-step = ")
    assert lines[1] == '+step = "1.27273 s"'
    assert lines[2] == "[connections]"
    assert lines[3] == '-"two.F" = { from = "one.F", extrapolation = { type = "nepce", alpha = 0.6 } }'
    assert lines[4] == '+"two.F" = { from = "one.F", extrapolation = { type = "nepce", alpha = 0.0 } }'
    assert len(lines) == 5
    assert made.body["data-row"] == "3"
    assert made.body["data-next"].startswith("row 4 of the front")
    assert made.body["data-clicked"].startswith("row 7 of the front")
    assert f"delta{1.0 / 1.27273:.4g} (now 0.71)" in made.body["data-chosen"]


def test_zoom_axes_and_shades(page):
    _, made = page
    assert made.body["data-zoomed"] == "true"
    assert made.body["data-whole"] == "true"
    assert made.body["data-heads"] == "two.F.alpha|step"
    assert made.body["data-inked"] == "true false"


def test_the_page_needs_nothing_else_and_is_small(page):
    file, _ = page
    text = file.read_text(encoding="utf-8")
    for reference in ("http:", "https:", "//cdn", "@import", "url(h", "<masses>"):
        assert reference not in text
    assert len(text) < 1_500_000


def test_the_lines_of_ten_thousand_are_those_of_each(many):
    experiment = Experiment(many.composite)
    found = changed_lines(many, experiment, range(10_000))
    for k in range(0, 10_000, 997):
        made = apply_choices(many.composite, many.space.values(many.points[k]))
        assert list(found[k]) == line_changes(scenario_tables(experiment), scenario_tables(Experiment(made)))


def test_choices_that_share_a_line_are_told_together():
    composite = Composite(Scenario({"a": LAG, "b": LAG}, {"a.u": "b.y", "b.u": "a.y"}), F(1, 10), Jacobi())
    over = {
        "algorithm": "jacobi, gauss-seidel",
        "order": "all",
        "outputs": "stale, consistent",
        "step": "0.1, 0.2",
    }
    tuned = judged(composite, over, ("rho", "work"), lambda values: (values["step"], 1.0))
    found = changed_lines(tuned, Experiment(composite), range(len(tuned.points)))
    words = [tuned.space.words(point) for point in tuned.points]
    for chosen, some in zip(words, found, strict=True):
        lines = {change.key: change.new for change in some}
        assert ("step" in lines) == (chosen["step"] == "0.2 s")
        if chosen["algorithm"] == "gauss-seidel":
            order = ", ".join(f'"{name}"' for name in chosen["order"].split())
            assert f"order = [{order}]" in lines["orchestrator"]
            assert ('outputs = "stale"' in lines["orchestrator"]) == (chosen["outputs"] == "stale")


def test_limits_and_what_has_no_number(tmp_path):
    tuned = judged(
        two_masses("Control21", 8.9),
        {"step": "1:10:10"},
        ("rho", "delta"),
        lambda values: (values["step"] / 5.0, NAN if values["step"] == 10.0 else 1.0 / values["step"]),
        limits={"rho": 1.0},
        now=(NAN, NAN),
    )
    text = tuned_page(tuned)
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert data["front"] == [0, 1, 2, 3, 4]
    assert data["outside"] == [5, 6, 7, 8]
    assert data["now"] == [None, None]
    assert "1 coupling without numbers: not drawn" in text
    assert "where now has none" in text
    file = tmp_path / "page.html"
    file.write_text(text, encoding="utf-8")
    made = opened(
        file, tmp_path, "document.body.dataset.limits = document.querySelectorAll('.limit').length;"
    )
    assert "data-error" not in made.body
    assert made.body["data-limits"] == "1"
    assert not made.having("now", tag="path")


def test_without_a_front_the_page_says_so(tmp_path):
    tuned = judged(
        two_masses("Control21", 8.9), {"step": "1:2:2"}, ("rho",), lambda values: (9.0,), {"rho": 1.0}
    )
    made = opened(write_tuning_page(tuned, tmp_path / "none.html"), tmp_path)
    assert "no coupling is within the limits" in made.text
    assert "data-error" not in made.body


def test_dark_and_narrow(page, tmp_path):
    file, _ = page
    dark = imread(painted(file, tmp_path, True))[..., :3]
    assert dark.mean() < 0.3
    assert dark.std() > 0.05
    script = "document.body.dataset.over = document.documentElement.scrollWidth - window.innerWidth;"
    assert opened(file, tmp_path, script, width=500).body["data-over"] == "0"
