"""Files that are damaged in any way are read or refused in words: no raw error, no endless work."""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

import hocket as hk
from files.car import CAR
from fmus.build import build
from fuzz.mutations import mutate_bytes, mutate_text
from systems import EXAMPLES, slow_after

BLOCKS = slow_after(1, [range(first, first + 200) for first in range(0, 2000, 200)])
"""Two thousand seeds, of which two hundred are tried at every landing."""
CSV = "time [s],y [m],b\n" + "".join(f"{tenth / 10},{tenth},{tenth % 2}\n" for tenth in range(50))


def raw_errors(seeds: range, attempt: Callable[[Random], Any]) -> list[str]:
    """Return what was raised that is not a HocketError, by seed."""
    raw = []
    for seed in seeds:
        try:
            attempt(Random(seed))
        except hk.HocketError:
            pass
        except Exception as error:
            raw.append(f"{seed}: {type(error).__name__}: {error}")
    return raw


@pytest.mark.parametrize("seeds", BLOCKS)
def test_a_mutated_scenario_file_is_read_or_refused(seeds: range, tmp_path: Path) -> None:
    for file in EXAMPLES.glob("*.py"):
        shutil.copy(file, tmp_path)
    texts = [CAR, *(file.read_text() for file in sorted(EXAMPLES.glob("*.toml")))]

    def attempt(random: Random) -> None:
        file = tmp_path / "mutated.toml"
        file.write_bytes(mutate_text(random.choice(texts), random).encode("utf-8", "surrogatepass"))
        experiment = hk.read(file)
        hk.write(experiment, tmp_path / "written.toml")
        hk.run(replace(experiment, stop=experiment.start + 3 * experiment.composite.step, every=None))

    assert not raw_errors(seeds, attempt)


@pytest.mark.parametrize("seeds", BLOCKS)
def test_a_mutated_table_is_read_or_refused(seeds: range, tmp_path: Path) -> None:
    def attempt(random: Random) -> None:
        file = tmp_path / "mutated.csv"
        as_bytes, as_text = mutate_bytes(CSV.encode(), random), mutate_text(CSV, random)
        file.write_bytes(random.choice((as_bytes, as_text.encode("utf-8", "surrogatepass"))))
        hk.run(hk.Composite(hk.Scenario({"table": hk.Csv(file)}), "0.1"), "1")

    assert not raw_errors(seeds, attempt)


@pytest.mark.parametrize("seeds", BLOCKS)
def test_a_mutated_system_structure_is_read_or_refused(seeds: range, tmp_path: Path) -> None:
    lag, gain = hk.Fmu(build("lag", 2, folder=tmp_path)), hk.Fmu(build("gain", 2, folder=tmp_path))
    pair = hk.Scenario({"lag": lag, "gain": gain}, {"lag.u": "gain.y", "gain.u": "lag.y"})
    around = hk.Scenario({"pair": hk.Composite(pair, "10 ms"), "end": lag}, {"end.u": "pair.lag.y"})
    hk.write(hk.Experiment(hk.Composite(around, "10 ms"), stop="20 ms"), tmp_path / "whole.ssp")
    whole = (tmp_path / "whole.ssp").read_bytes()

    def attempt(random: Random) -> None:
        file = tmp_path / "mutated.ssp"
        file.write_bytes(_with_mutated_text(whole, random))
        hk.run(hk.read(file), "20 ms")

    assert not raw_errors(seeds, attempt)


def _with_mutated_text(archive: bytes, random: Random) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(packed, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename.endswith(".ssd"):
                content = mutate_text(content.decode(), random).encode("utf-8", "surrogatepass")
            new.writestr(entry.filename, content)
    return packed.getvalue()
