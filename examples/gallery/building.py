"""Twenty zones over a year of weather, with set points by the day of the week.

python examples/gallery/building.py [FOLDER] [DAYS]
"""

from __future__ import annotations

import sys
from pathlib import Path

from drawing import chosen_folder, draw
from weather import write_weather

import hocket as hk

ZONES, STORES, OUTER, INNER, MOST = 20, 5e6, 80.0, 150.0, 4.0
"""J/K that a zone stores; W/K to the outside, and to each of its two neighbours; kW that a heater gives."""


def building(weather: Path) -> hk.Composite:
    """Return zones in a ring, each with a heater that is limited; zones in the south have half the losses."""
    set_point = {"weekdays": {"06:00": 21, "20:00": 17}, "weekend": 17}
    models: dict[str, hk.StateSpace | hk.blocks.Saturation | hk.Csv | hk.Schedule] = {
        "weather": hk.Csv(weather, columns={"outside [degC]": "dry_bulb"}),
        "set_point": hk.Schedule({"T [degC]": set_point}, origin="2024-01-01"),
    }
    wires = {}
    for k in range(ZONES):
        outer = OUTER / 2.0 if k >= ZONES // 2 else OUTER
        models[f"zone{k}"] = hk.StateSpace(
            A=[[-(outer + 2 * INNER) / STORES]],
            B=[[1e3 / STORES, outer / STORES, INNER / STORES, INNER / STORES]],
            C=[[1]],
            x0=[17.0],
            inputs=["heat [kW]", "outside [degC]", "before [degC]", "behind [degC]"],
            outputs=["T [degC]"],
        )
        models[f"control{k}"] = hk.Sum("T [degC]", "wanted [degC]", gains=[-2.0, 2.0], unit="kW")
        models[f"heater{k}"] = hk.blocks.Saturation(0.0, MOST, unit="kW")
        wires |= {
            f"control{k}.T": f"zone{k}.T",
            f"control{k}.wanted": "set_point.T",
            f"heater{k}.u": f"control{k}.y",
            f"zone{k}.heat": f"heater{k}.y",
            f"zone{k}.outside": "weather.outside",
            f"zone{k}.before": f"zone{(k - 1) % ZONES}.T",
            f"zone{k}.behind": f"zone{(k + 1) % ZONES}.T",
        }
    scenario = hk.Scenario(models, wires, record=["*.T", "heater*.y", "weather.outside"])
    return hk.Composite(scenario, "15 min", extrapolation="linear")


def main(folder: Path, days: int = 365) -> hk.Run:
    """Run a year, print the heat of each month, draw two weeks."""
    write_weather(folder / "weather.epw")
    house = building(folder / "weather.epw")
    print(hk.check(house, stop="7 d", pilot_seconds=30.0).verdict()[0].split(":")[0])
    run = hk.run(house, f"{days} d", folder=None)
    heat = run.resample("month", "integral", ["heater*.y"], origin="2024-01-01").sum(axis=1) / 3600.0
    print(*(f"{month:%B}: {kwh:.0f} kWh" for month, kwh in heat.items()), sep="\n")
    frame = run.to_pandas(rate="15 min").loc[: 14 * 86400.0]
    days_passed = frame.index / 86400.0
    names = {"zone0.T": "a zone in the north", "zone15.T": "in the south", "weather.outside": "outside"}
    panels = [
        {"label": "degC", "curves": {name: (days_passed, frame[port]) for port, name in names.items()}},
        {"label": "kW", "curves": {"all": (days_passed, frame.filter(like="heater").sum(axis=1))}},
    ]
    panels = [panel | {"time": "day"} for panel in panels]
    draw(folder / "building.png", "Two weeks of January", panels)
    return run


if __name__ == "__main__":
    main(chosen_folder(), *map(int, sys.argv[2:]))
