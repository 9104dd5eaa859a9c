"""`hocket sweep`: going on in a folder, in parts, from a checkpoint, as one Parquet table."""

import pyarrow.parquet as parquet

from command_line import good, refused
from systems import EXAMPLES

MASSES = EXAMPLES / "masses.toml"
VARIED = ("--vary", "b.A[2,1]=-4:-1:4", "--step", "10 ms", "--stop", "1 s")


def test_parts_share_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good("sweep", MASSES, *VARIED, "--folder", "s", "--shard", "2/2", "--quiet")
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["002", "004", "sweep.json"]
    before = (tmp_path / "s" / "004" / "run.json").stat().st_mtime_ns
    said = good("sweep", MASSES, *VARIED, "--folder", "s", "--again", "--parquet", "t.parquet")
    assert "final values of 4 runs in s" in said
    assert (tmp_path / "s" / "004" / "run.json").stat().st_mtime_ns == before
    table = parquet.read_table(tmp_path / "t.parquet")
    assert table["run"].to_pylist() == [1, 2, 3, 4]
    assert table["b.A[2,1]"].to_pylist() == [-4.0, -3.0, -2.0, -1.0]
    said = refused("sweep", MASSES, *VARIED[:-1], "2 s", "--folder", "s", "--again")
    assert "s holds another sweep" in said


def test_runs_begin_at_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    how = ("--step", "10 ms", "--stop", "1 s")
    good("run", MASSES, *how, "--folder", "r", "--checkpoint-every", "1 h", "--quiet")
    good("sweep", MASSES, "--vary", "b.A[2,1]=-3,-2", "--step", "10 ms", "--stop", "2 s", "--checkpoint", "r",
         "--folder", "s", "--quiet")  # fmt: skip
    assert (tmp_path / "s" / "002" / "run.json").exists()
    said = refused("sweep", MASSES, *VARIED, "--checkpoint", "r", "--record", "a.x")
    assert "`record` is that of the run that has written the checkpoint" in said


def test_what_does_not_fit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "needs `--folder`" in refused("sweep", MASSES, *VARIED, "--again")
    assert "is not a shard" in refused("sweep", MASSES, *VARIED, "--shard", "5/4")
