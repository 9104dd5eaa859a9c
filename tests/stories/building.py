# a building researcher has 20 zones, a year of weather, and set points by the day of the week
import hocket as hk
from hocket.blocks import Saturation

ZONES, STORES, OUTER, INNER, MOST = 20, 5e6, 80.0, 150.0, 4.0  # J/K, W/K, W/K, kW
LOSS = OUTER + 2 * INNER
UNITS = {"heat": "kW", "outside": "degC", "before": "degC", "behind": "degC"}

weather = hk.Csv("weather.epw", columns={"outside [degC]": "dry_bulb"})
set_point = hk.Schedule(
    {"T [degC]": {"weekdays": {"06:00": 21, "20:00": 17}, "weekend": 17}}, origin="2024-01-01"
)
models, wires = {"weather": weather, "set_point": set_point}, {}
for k in range(ZONES):
    models[f"zone{k}"] = hk.StateSpace(
        [[-LOSS / STORES]], [[1e3 / STORES, OUTER / STORES, INNER / STORES, INNER / STORES]], [[1]],
        x0=[17.0], inputs=[f"{name} [{unit}]" for name, unit in UNITS.items()], outputs=["T [degC]"],
    )  # fmt: skip
    models[f"control{k}"] = hk.Sum("T [degC]", "wanted [degC]", gains=[-2.0, 2.0], unit="kW")
    models[f"heater{k}"] = Saturation(0.0, MOST, unit="kW")
    wires |= {
        f"control{k}.T": f"zone{k}.T", f"control{k}.wanted": "set_point.T", f"heater{k}.u": f"control{k}.y",
        f"zone{k}.heat": f"heater{k}.y", f"zone{k}.outside": "weather.outside",
        f"zone{k}.before": f"zone{(k - 1) % ZONES}.T", f"zone{k}.behind": f"zone{(k + 1) % ZONES}.T",
    }  # fmt: skip
house = hk.Composite(
    hk.Scenario(models, wires, record=["*.T", "heater*.y"]), "15 min", extrapolation="linear"
)
run = hk.run(house, "365 d", folder="runs/year")
monthly = run.resample("month", "integral", ["heater*.y"], origin="2024-01-01").sum(axis=1) / 3600.0
print(monthly.round(0).to_string())
run.to_pandas(ports=["zone0.T"], origin="2024-01-01").to_parquet("zone0.parquet")
