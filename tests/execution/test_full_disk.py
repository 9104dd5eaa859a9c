"""A disk that is full keeps as many rows as there is room for."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hocket as hk

LIMIT = 40_000
FULL = """
import resource, sys
import hocket as hk
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
tank = hk.StateSpace([[0.0]], [[-1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
inner = hk.Composite(hk.Scenario({{"tank": tank}}, {{"tank.u": "tank.x"}}), "0.5 ms")
models = {{"tank": tank, "other": inner}}
try:
    hk.run(hk.Composite(hk.Scenario(models, {{"tank.u": "tank.x"}}), "1 ms"), 100, folder=sys.argv[1])
except hk.HocketError as error:
    print(error, *getattr(error, "__notes__", ()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
def test_rows_that_were_computed_fill_the_room_there_is(tmp_path: Path) -> None:
    """Two columns of 8 bytes: the first block alone is larger than the limit."""
    folder = tmp_path / "run"
    said = subprocess.run(
        [sys.executable, "-c", FULL.format(limit=LIMIT), str(folder)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "cannot write" in said
    assert json.loads((folder / "run.json").read_text())["status"] == "failed"
    run = hk.open_run(folder)
    for port, step in (("tank.x", 1e-3), ("other.tank.x", 5e-4)):
        found = run[port]
        assert 0.8 * LIMIT < 16 * len(found) < LIMIT
        np.testing.assert_allclose(np.diff(found.t), step, rtol=1e-6)  # none is missing in between
    assert f"rows up to t = {float(run['other.tank.x'].t[-1])!r} s are kept" in said
