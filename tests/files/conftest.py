"""What the tests of files share."""

from pathlib import Path

import pytest

from files.car import PLANT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plant.py").write_text(PLANT)
    (tmp_path / "measured.csv").write_text("time [ms],wheel speed,force [N]\n0,1,2\n1000,2,3\n")
    return tmp_path
