"""FMUs that are damaged in any way, binaries included: they run or are refused, and the process lives on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from fmus.build import build
from fuzz.mutations import mutate_archive
from systems import slow_after

MODELS = (("lag", 1), ("lag", 2), ("lag", 3), ("types", 2), ("types", 3), ("arrays", 3), ("ball", 2))
BLOCKS = slow_after(1, [range(first, first + 50) for first in range(0, 2000, 50)])
"""Two thousand archives, of which fifty are tried at every landing."""
RUN_ALL = """
import sys
import hocket as hk

for file in sys.argv[1:]:
    try:
        hk.run(hk.Fmu(file), "0.01", step="0.002")
        print("ran", flush=True)
    except hk.HocketError as error:
        print("refused", str(error).splitlines()[0][:60], flush=True)
"""


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    folder = tmp_path_factory.mktemp("archives")
    return [build(name, version, folder=folder / str(version)).read_bytes() for name, version in MODELS]


@pytest.mark.parametrize("seeds", BLOCKS)
def test_a_mutated_archive_does_not_end_the_process(
    seeds: range, archives: list[bytes], tmp_path: Path
) -> None:
    files = []
    for seed in seeds:
        random = Random(seed)
        files.append(tmp_path / f"{seed}.fmu")
        files[-1].write_bytes(mutate_archive(random.choice(archives), random))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN_ALL, *map(str, files)],
        capture_output=True,
        text=True,
        timeout=30 * len(files),
        env=os.environ | {"HOCKET_FIRST_CONTACT": "1", "HOCKET_CACHE": str(tmp_path / "cache")},
    )
    answers = done.stdout.splitlines()
    name = "" if len(answers) == len(files) else files[len(answers)].name
    assert (done.returncode, name) == (0, ""), f"{name} ended the process: {done.stderr[-2000:]}"
    assert any(answer.startswith("ran") for answer in answers)
