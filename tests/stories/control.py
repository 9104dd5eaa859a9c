# a control engineer asks what sampling and computing time do to a loop
import hocket as hk
from hocket.blocks import PID, Delay, Step, TransferFunction, margins, step_metrics

PLANT = TransferFunction([4.0], [1.0, 4.0, 0.0])  # a motor: 4 / (s (s + 4))


def loop(K: float, period: str | None = None, delay: str | None = None) -> hk.Composite:
    models = {"reference": Step(), "pid": PID(K=K, Td="0.1 s", N=20, period=period), "motor": PLANT}
    wires = {"pid.reference": "reference.y", "pid.measured": "motor.y", "motor.u": "pid.control"}
    if delay:
        models["late"] = Delay(delay)
        wires |= {"late.u": "pid.control", "motor.u": "late.y"}
    return hk.Composite(hk.Scenario(models, wires), step="2 ms")


found = margins([PID(K=6.0, Td="0.1 s", N=20), PLANT])
print(f"phase margin {found.phase:.2f} deg, delay margin {found.delay:.4f} s")
for name, level in {
    "continuous": loop(6.0),
    "sampled": loop(6.0, "50 ms"),
    "sampled, late": loop(6.0, "50 ms", "20 ms"),
}.items():
    run = hk.run(level, "4 s")
    print(f"{name}: overshoot {100 * step_metrics(*run['motor.y'], final=1.0).overshoot:.2f} %")
for delay in ("100 ms", "400 ms"):
    print(f"late by {delay}: {hk.run(loop(6.0, delay=delay), '20 s').final('motor.y'):.3g} after 20 s")
runs = hk.sweep(loop(6.0), [{"pid.K": K} for K in (2.0, 4.0, 6.0, 8.0)], "4 s", folder=None)
print(
    "best ISE at K =",
    min(
        zip(runs, (2, 4, 6, 8), strict=True),
        key=lambda pair: step_metrics(*pair[0]["motor.y"], final=1.0).ise,
    )[1],
)
runs[0].plot(
    "motor.y", beside={f"K = {K}": run for K, run in zip((4, 6, 8), runs[1:], strict=True)}, path="gains.png"
)
