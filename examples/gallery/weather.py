"""A year of weather in EnergyPlus' format, of sines: what a building researcher would download."""

import math
from pathlib import Path

HEADER = (
    "LOCATION,Nowhere,-,-,made,0,50.0,10.0,1.0,100.0",
    "DESIGN CONDITIONS,0",
    "TYPICAL/EXTREME PERIODS,0",
    "GROUND TEMPERATURES,0",
    "HOLIDAYS/DAYLIGHT SAVINGS,No,0,0,0",
    "COMMENTS 1,sines over the year and the day",
    "COMMENTS 2,",
    "DATA PERIODS,1,1,Data,Monday,1/1,12/31",
)
LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def temperature(hour: int) -> float:
    """Return degC at the end of an hour of the year: 9 on average, 10 warmer in July, 4 warmer at 15:00."""
    year = -math.cos(2.0 * math.pi * (hour - 360) / 8760.0)
    return round(9.0 + 10.0 * year + 4.0 * math.cos(2.0 * math.pi * (hour - 15) / 24.0), 1)


def write_weather(path: Path) -> None:
    """Write 8,760 hours; every column but the temperature is marked as missing."""
    rows, hour = [], 0
    for month, days in enumerate(LENGTHS, 1):
        for day in range(1, days + 1):
            for end in range(1, 25):
                hour += 1
                fields = ["2024", str(month), str(day), str(end), "0", "?9", f"{temperature(hour)}"]
                fields += ["99.9", "999", "999999", *["9999"] * 9, "9999", "999", "999", "99", "99"]
                fields += ["9999", "99999", "9", "999999999", "999", ".999", "999", "99", "999", "999", "99"]
                rows.append(",".join(fields))
    path.write_text("\n".join((*HEADER, *rows)) + "\n")
