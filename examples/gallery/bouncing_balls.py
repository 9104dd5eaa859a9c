"""Three balls that bounce: events inside steps of 50 ms, met to the last digit, and named when they pile up.

python examples/gallery/bouncing_balls.py [FOLDER]
"""

from __future__ import annotations

from pathlib import Path

from drawing import chosen_folder, draw

import hocket as hk

GRAVITY, HEIGHT = 9.81, 1.0
RESTITUTIONS = {"rubber": 0.9, "wood": 0.8, "clay": 0.7}


def ball(restitution: float) -> hk.Ode:
    """Return a ball that falls, and turns around where its height crosses zero."""
    bounce = hk.Event(
        lambda t, x, u, restitution: x[0], "falling", lambda t, x, u, restitution: [0.0, -restitution * x[1]]
    )
    return hk.Ode(
        lambda t, x, u, restitution: [x[1], -GRAVITY],
        x0=[HEIGHT, 0.0],
        outputs=["height [m]", "speed [m/s]"],
        events=[bounce],
        restitution=restitution,
    )


balls = hk.Composite(hk.Scenario({name: ball(e) for name, e in RESTITUTIONS.items()}), "50 ms")


def bounces(run: hk.Run, name: str) -> list[float]:
    """Return when a ball turned around: its speed jumps up between two rows of one time."""
    t, speed = run[f"{name}.speed"]
    return [float(t[k]) for k in range(1, len(t)) if t[k] == t[k - 1] and speed[k] > speed[k - 1]]


def main(folder: Path) -> None:
    """Run until the clay is about to lie still, then beyond."""
    run = hk.run(balls, "2.5 s", folder=None)
    for name in RESTITUTIONS:
        times = bounces(run, name)
        print(f"{name}: {len(times)} bounces, the first at {times[0]:.9f} s, the last at {times[-1]:.9f} s")
    try:
        hk.run(balls, "3 s", folder=None)
    except hk.HocketError as error:
        print(str(error).splitlines()[0].split(";")[0])
    curves = {name: run[f"{name}.height"] for name in RESTITUTIONS}
    draw(
        folder / "bouncing_balls.png",
        "Steps of 50 ms, events where they are",
        [{"label": "height [m]", "curves": curves}],
    )


if __name__ == "__main__":
    main(chosen_folder())
