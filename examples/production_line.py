"""A production line in SimPy that heats its hall: queues beside a differential equation.

Run it with `python examples/production_line.py [FOLDER]`: it draws production_line.png. Two machines work on
parts that arrive every 10 min, and each makes 5 kW of heat while it works. When the hall is above 26 degC,
a machine waits for it to cool before it takes the next part.
"""

import sys
from pathlib import Path

import simpy

import hocket as hk

ARRIVAL, WORK = 600.0, {"mill": 420.0, "drill": 540.0}


def line(env, ports):
    """Start the processes: parts come, go through the mill, and then the drill."""
    queues = {name: simpy.Store(env) for name in WORK}
    working = dict.fromkeys(WORK, False)

    def parts():
        while True:
            yield queues["mill"].put(1)
            yield env.timeout(ARRIVAL)

    def machine(name, following):
        while True:
            part = yield queues[name].get()
            while ports["temperature"].value > 299.15:
                yield env.timeout(60.0)
            working[name] = True
            ports["heat"].value = 5.0 * sum(working.values())
            yield env.timeout(WORK[name])
            working[name] = False
            ports["heat"].value = 5.0 * sum(working.values())
            if following is None:
                ports["made"].value += 1.0
            else:
                yield queues[following].put(part)

    env.process(parts())
    env.process(machine("mill", "drill"))
    env.process(machine("drill", None))


# the hall stores 4 MJ per kelvin and loses 600 W per kelvin; 15 degC outside
hall = hk.StateSpace(
    [[-600 / 4e6]], [[1e3 / 4e6, 600 / 4e6]], [[1]], x0=[291.15],
    inputs=["heat [kW]", "outside [K] = 288.15"], outputs=["temperature [K]"],
)  # fmt: skip
models = {"line": hk.SimPy(line, ["temperature [K]"], ["heat [kW]", "made"]), "hall": hall}
wires = {"hall.heat": "line.heat", "line.temperature": "hall.temperature"}
factory = hk.Composite(hk.Scenario(models, wires), step="1 min")

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    run = hk.run(factory, stop="8 h")
    warmest = max(run["hall.temperature"].values) - 273.15
    print(f"{run.final('line.made'):.0f} parts in 8 h, the hall at up to {warmest:.2f} degC")
    run.plot("hall.temperature", "line.heat", "line.made", path=folder / "production_line.png")
