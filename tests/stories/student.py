# a doctoral student has an algorithm, Gauss-Seidel with one correction: is it any better?
import hocket as hk
from hocket.plan import Feed, Plan, Read, Record, Restore, Save, Step
from hocket.testing import check_orchestrator

left = hk.StateSpace([[0, 1], [-1, -0.1]], [[0], [1]], [[1, 0], [0, 1]], x0=[1, 0],
                     inputs=["force [N]"], outputs=["x [m]", "v [m/s]"])  # fmt: skip
right = hk.StateSpace([[0, 1], [-11, -1.1]], [[0, 0], [10, 1]], [[10, 1]], D=[[-10, -1]],
                      inputs=["x [m]", "v [m/s]"], outputs=["force [N]"])  # fmt: skip
wires = {"right.x": "left.x", "right.v": "left.v", "left.force": "right.force"}
scenario = hk.Scenario({"left": left, "right": right}, wires)


class Corrected:
    def plan(self, scenario):
        once = [part for name in scenario.models for part in (Feed(name), Step(name), Read(name))]
        first = next(iter(scenario.models))
        return Plan((Save((first,)), *once, Restore((first,)), *once[:3], Record()))


check_orchestrator(Corrected(), scenario)
for name, algorithm in {"gauss-seidel": "gauss-seidel", "corrected": Corrected()}.items():
    for step in ("50 ms", "25 ms"):
        level = hk.Composite(scenario, step, algorithm)
        found = hk.check(level, stop="20 s")
        off = found.prediction.worst.relative
        print(f"{name} {step}: spectral radius {found.stability.rho:.8f}, off by {off:.2e}")
print(hk.run(hk.Composite(scenario, "50 ms", Corrected()), "20 s").plan_text)
