"""Who couples FMUs, and where each is installed.

In:  the name of a tool and a folder for environments
Out: the Python that has it, or why there is none
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tool:
    """Somebody who can couple FMUs."""

    title: str
    module: str = ""
    """In this folder; nothing for the C loop, and for those that could never be tried."""
    packages: str = ""
    """What pip is to install."""
    home: str = "rivals"
    """Its environment; `own` is the one that runs this."""
    pace: int = 100
    """About so many nanoseconds per FMU step: from this follows how many steps it is given."""
    start: str = "exchanged"
    """What it does before the first step; see bare_fmus.c."""
    at_once: bool = False
    """The whole run in one call of a container FMU."""
    record_only: bool = False
    remark: str = ""


AT_ONCE = "the whole run in one call of fmi2DoStep: no value is to be had on the way"

TOOLS = {
    "bare": Tool("C loop", home="own", pace=10),
    "bare-rows": Tool("C loop that writes rows", home="own", pace=20, record_only=True),
    "hocket": Tool("hocket", "hocket_run", home="own", pace=15),
    "fmpy-container-at-once": Tool(
        "FMPy container, one doStep", "fmpy_container", "fmpy", pace=40, at_once=True, remark=AT_ONCE
    ),
    "fmpy-container": Tool("FMPy container", "fmpy_container", "fmpy", pace=200),
    "toolbox-container-at-once": Tool(
        "FMU toolbox container, one doStep",
        "toolbox_container",
        "fmu-manipulation-toolbox fmpy",
        pace=100,
        at_once=True,
        remark=AT_ONCE,
    ),
    "toolbox-container": Tool(
        "FMU toolbox container", "toolbox_container", "fmu-manipulation-toolbox fmpy", pace=200
    ),
    "ecos": Tool("ecospy", "ecos", "tbb ecospy", pace=500),
    "libcosim": Tool("libcosimpy", "libcosim", "libcosimpy", pace=3_000),
    "fmpy-loop": Tool("FMPy, loop in Python", "fmpy_loop", "fmpy", pace=10_000),
    "fmpy-ssp": Tool(
        "FMPy simulate_ssp",
        "fmpy_ssp",
        "fmpy",
        pace=20_000,
        start="blank",
        remark="always records; inputs are 0 in the first step, as in the C loop that it is compared with",
    ),
    "cofmupy": Tool("CoFmuPy", "cofmupy_master", "cofmpy", home="cofmpy", pace=20_000),
    "helics": Tool("HELICS", "helics_federates", "helics fmpy", pace=120_000),
    "mosaik": Tool("mosaik", "mosaik_world", "mosaik fmpy", pace=300_000),
    "omsimulator": Tool("OMSimulator", packages="OMSimulator", home="omsimulator"),
    "pyfmi": Tool("PyFMI", packages="pyfmi", home="pyfmi"),
}


def python_of(tool: Tool, folder: Path) -> tuple[Path, str]:
    """Return the Python that has the tool, or why there is none. What pip said is kept for the next time."""
    if tool.home == "own":
        return Path(sys.executable), ""
    home = folder / tool.home
    python, said = home / "bin" / "python", home / "pip.json"
    if not python.exists():
        print(f"making {home} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
    outcomes: dict[str, str] = json.loads(said.read_text()) if said.exists() else {}
    for package in tool.packages.split():
        if package not in outcomes:
            print(f"installing {package} ...", file=sys.stderr)
            command = [python, "-m", "pip", "install", "--disable-pip-version-check", package]
            done = subprocess.run(command, capture_output=True, text=True)
            outcomes[package] = "" if done.returncode == 0 else why(done.stdout + done.stderr)
            said.write_text(json.dumps(outcomes, indent=1))
        if outcomes[package]:
            return python, f"pip cannot install {package}: {outcomes[package]}"
    return python, "" if tool.module else "pip installs it here, but it could never be tried: no adapter"


def why(text: str) -> str:
    """Return the line of an output that says most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "rror:" in line and "subprocess" not in line]
    return (telling[:1] or lines[-1:] or ["it said nothing"])[0][:200]
