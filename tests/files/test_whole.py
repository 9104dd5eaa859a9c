"""Files are seen whole or not at all; what is no file stays what it is."""

import os
import stat
import threading

import pytest

from hocket.errors import HocketError
from hocket.files.atomic_files import write_text


def test_a_link_stays_a_link(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    write_text(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


def test_a_pipe_is_written_into(tmp_path):
    pipe, seen = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: seen.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "through")
    reader.join(10)
    assert seen == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_full_device_is_told_and_stays():
    with pytest.raises(HocketError, match="cannot write `full`"):
        write_text("/dev/full", "x" * 100_000)
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_what_fails_on_the_way_leaves_the_old(tmp_path):
    from hocket.files.atomic_files import replace_file

    file = tmp_path / "file"
    file.write_text("old")

    def half_written():
        with replace_file(file) as out:
            out.write(b"ne")
            raise ValueError

    with pytest.raises(ValueError):
        half_written()
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
