"""Archives: unpacked once, kept by content, and nothing that leads out of the folder or fills the disk."""

import contextlib
import hashlib
import os
import stat
import struct
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fmus.build import build
from hocket.errors import FileError
from hocket.simulators.fmu import archive
from hocket.simulators.fmu.archive import (
    Limits,
    cache_folder,
    doubled_files_note,
    extract_archive,
    unpack_archive,
)

XML = b"<fmiModelDescription/>"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HOCKET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "fmus"


def fmu(tmp_path, entries=(), name="lag.fmu", xml=XML):
    path = tmp_path / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        if xml is not None:
            zipped.writestr("modelDescription.xml", xml)
        for entry, content in dict(entries).items():
            zipped.writestr(entry, content)
    return path


def refusal(path, **keywords):
    with pytest.raises(FileError) as caught:
        unpack_archive(path, **keywords)
    (fault,) = caught.value.faults
    return fault


def test_an_archive_becomes_a_folder_named_after_its_content(tmp_path, cache):
    path = fmu(tmp_path, {"binaries/linux64/lag.so": b"code", "resources/": b"", "resources/a b.txt": b"x"})
    folder = unpack_archive(path)
    assert folder == cache / hashlib.sha256(path.read_bytes()).hexdigest()
    assert (folder / "modelDescription.xml").read_bytes() == XML
    assert (folder / "binaries" / "linux64" / "lag.so").read_bytes() == b"code"
    assert (folder / "resources" / "a b.txt").read_bytes() == b"x"
    assert [place.name for place in cache.iterdir()] == [folder.name]  # no temporary folder stays


def test_a_second_call_neither_hashes_nor_unpacks(tmp_path, monkeypatch):
    path = fmu(tmp_path)
    folder = unpack_archive(path)
    monkeypatch.setattr(archive, "_unpack_into_cache", None)
    assert unpack_archive(path) == folder


def test_a_changed_file_is_unpacked_anew(tmp_path):
    one = unpack_archive(fmu(tmp_path))
    path = fmu(tmp_path, {"more": b"1"})
    os.utime(path, (1, 1))
    other = unpack_archive(path)
    assert one != other
    assert (other / "more").is_file()


def test_equal_content_is_shared(tmp_path):
    path = fmu(tmp_path)
    other = tmp_path / "copy.fmu"
    other.write_bytes(path.read_bytes())
    assert unpack_archive(path) == unpack_archive(other)


def test_a_damaged_cache_is_mended(tmp_path):
    path = fmu(tmp_path, {"resources/table.txt": b"12345"})
    folder = unpack_archive(path)
    (folder / "resources" / "table.txt").unlink()
    archive._known.clear()
    assert (unpack_archive(path) / "resources" / "table.txt").read_bytes() == b"12345"
    (folder / "resources" / "table.txt").write_bytes(b"1")
    archive._known.clear()
    assert (unpack_archive(path) / "resources" / "table.txt").read_bytes() == b"12345"


def test_a_cache_with_other_content_of_the_same_size_is_mended(tmp_path):
    path = build("lag", 2, folder=tmp_path)
    folder = unpack_archive(path)
    binary = next(folder.glob("binaries/*/*.so"))
    whole = binary.read_bytes()
    binary.chmod(0o644)
    binary.write_bytes(bytes(len(whole)))  # as a power cut leaves it
    archive._known.clear()
    assert next(unpack_archive(path).glob("binaries/*/*.so")).read_bytes() == whole


def test_a_cache_removed_during_the_run_is_made_anew(tmp_path):
    path = fmu(tmp_path)
    (unpack_archive(path) / "modelDescription.xml").unlink()
    assert (unpack_archive(path) / "modelDescription.xml").is_file()


def test_many_at_once(tmp_path, cache):
    path = fmu(tmp_path, {f"resources/{n}": os.urandom(1000) for n in range(50)})

    def fresh(_):
        archive._known.clear()
        return unpack_archive(path)

    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(fresh, range(32)))
    assert len(folders) == 1
    assert len(list(cache.iterdir())) == 1
    assert len(list((folders.pop() / "resources").iterdir())) == 50


def test_many_processes_at_once(tmp_path, cache):
    path = fmu(tmp_path, {f"resources/{n}": os.urandom(100_000) for n in range(20)})
    code = "import sys; from pathlib import Path; from hocket.simulators.fmu.archive import unpack_archive; "
    code += "print(len(list((unpack_archive(Path(sys.argv[1])) / 'resources').iterdir())))"
    command = [sys.executable, "-c", code, str(path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate()[0].strip() for process in running] == ["20"] * 4
    assert len(list(cache.iterdir())) == 1


def test_a_folder_is_used_as_it_is(tmp_path):
    (tmp_path / "lag").mkdir()
    (tmp_path / "lag" / "modelDescription.xml").write_bytes(XML)
    assert unpack_archive(tmp_path / "lag") == tmp_path / "lag"


def test_a_folder_without_a_description(tmp_path):
    fault = refusal(tmp_path)
    assert fault.what == "the folder holds no `modelDescription.xml`"
    assert fault.where == str(tmp_path)
    assert fault.expected == "an archive, or a folder with `modelDescription.xml`"


def test_other_archives_hold_other_files(tmp_path):
    path = fmu(tmp_path, {"SystemStructure.ssd": b"<s/>"}, name="car.ssp", xml=None)
    assert (unpack_archive(path, "SystemStructure.ssd") / "SystemStructure.ssd").is_file()
    assert refusal(path).what == "the archive holds no `modelDescription.xml`"


def test_a_missing_file(tmp_path):
    fmu(tmp_path)
    fault = refusal(tmp_path / "log.fmu")
    assert fault.what == f"there is no file `{tmp_path / 'log.fmu'}`"
    assert fault.hint == "did you mean `lag.fmu`?"
    assert refusal(tmp_path / "no" / "lag.fmu").hint == ""


def test_not_a_zip(tmp_path):
    path = tmp_path / "lag.fmu"
    path.write_text("<html>not found</html>")
    fault = refusal(path)
    assert fault.what == "the file is not a zip archive"
    assert fault.expected == "a zip archive, as every .fmu is"
    path.write_bytes(b"")
    assert refusal(path).what == "the file is empty"


def test_a_truncated_zip(tmp_path):
    path = fmu(tmp_path, {"a": os.urandom(5000)})
    path.write_bytes(path.read_bytes()[:3000])
    fault = refusal(path)
    assert fault.what.startswith("the archive is damaged: ")
    assert fault.where == str(path)
    assert fault.expected == "a whole zip archive"
    assert fault.hint == "copy or export the file again"


def test_a_corrupt_zip(tmp_path, cache):
    path = fmu(tmp_path, {"a": os.urandom(5000)})
    content = bytearray(path.read_bytes())
    content[2000] ^= 0xFF
    path.write_bytes(content)
    assert refusal(path).what == "the archive is damaged: Bad CRC-32 for file 'a'"
    assert not list(cache.iterdir())  # nothing half unpacked stays


@pytest.mark.parametrize("byte", range(0, 400, 7))
def test_whatever_is_corrupt_is_a_file_error_or_harmless(tmp_path, byte):
    path = fmu(tmp_path, {"resources/a.txt": b"hello" * 30})
    content = bytearray(path.read_bytes())
    content[byte % len(content)] ^= 0x5A
    path.write_bytes(content)
    with contextlib.suppress(FileError):
        assert (unpack_archive(path) / "modelDescription.xml").is_file()


@pytest.mark.parametrize(
    "name",
    ["../evil", "a/../../evil", "/etc/evil", "..\\evil", "C:/evil", "c:evil", "\\\\host\\evil", "a/.."],
)
def test_entries_that_lead_out_of_the_folder(tmp_path, name):
    fault = refusal(fmu(tmp_path, {name: b"x"}))
    assert fault.what == f"the archive holds `{name}`, which leads out of its folder"
    assert fault.expected == "relative paths without `..`"
    assert fault.hint == "do not trust this file"
    assert not list(tmp_path.rglob("evil"))


def test_a_link_is_refused(tmp_path):
    entry = zipfile.ZipInfo("resources")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    fault = refusal(fmu(tmp_path, {entry: b"/etc"}))
    assert fault.what == "the archive holds `resources`, a link"
    assert fault.expected == "files and folders only"
    entry.external_attr = (stat.S_IFIFO | 0o666) << 16
    assert refusal(fmu(tmp_path, {entry: b""})).what == "the archive holds `resources`, a device"


def test_an_encrypted_archive(tmp_path):
    path = fmu(tmp_path, {"a": b"secret"})
    content = bytearray(path.read_bytes())
    for start, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        place = content.rindex(start) + offset
        content[place] |= 1
    path.write_bytes(content)
    fault = refusal(path)
    assert fault.what == "`a` is encrypted"
    assert fault.expected == "an archive without a password"


def test_a_compression_nobody_knows(tmp_path):
    path = fmu(tmp_path, {"a": b"x" * 100})
    content = bytearray(path.read_bytes())
    for start, offset in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
        place = content.rindex(start) + offset
        content[place : place + 2] = struct.pack("<H", 98)
    path.write_bytes(content)
    fault = refusal(path)
    assert fault.what == "the archive cannot be unpacked: That compression method is not supported"
    assert fault.expected == "a plain zip archive"


def test_two_files_of_one_name(tmp_path):
    path = fmu(tmp_path)
    with zipfile.ZipFile(path, "a") as zipped, pytest.warns(UserWarning, match="Duplicate name"):
        zipped.writestr("modelDescription.xml", b"<other/>")
    assert refusal(path).what == "the archive holds two files named `modelDescription.xml`"


def test_two_files_of_one_name_that_are_the_same_are_taken_with_a_note(tmp_path):
    path = fmu(tmp_path, {"resources/a.txt": b"same"})
    with zipfile.ZipFile(path, "a") as zipped, pytest.warns(UserWarning, match="Duplicate name"):
        zipped.writestr("resources/a.txt", b"same", zipfile.ZIP_STORED)
    assert (unpack_archive(path) / "resources" / "a.txt").read_bytes() == b"same"
    assert (
        doubled_files_note(path) == "the archive holds `resources/a.txt` more than once, each time the same"
    )
    with zipfile.ZipFile(path, "a") as zipped, pytest.warns(UserWarning, match="Duplicate name"):
        zipped.writestr("resources/a.txt", b"emas")
    assert refusal(path).what == "the archive holds two files named `resources/a.txt`"


def test_backslashes_of_windows_tools(tmp_path):
    path = fmu(tmp_path, {"binaries\\": b"", "binaries\\win64\\lag.dll": b"code"})
    assert (unpack_archive(path) / "binaries" / "win64" / "lag.dll").read_bytes() == b"code"


def test_the_description_in_a_folder_of_its_own(tmp_path):
    fault = refusal(fmu(tmp_path, {"lag/modelDescription.xml": XML}, xml=None))
    assert fault.what == "the archive holds no `modelDescription.xml`"
    assert fault.hint == "it is in the folder `lag`: zip what is in that folder, not the folder"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such bits")
def test_programs_stay_executable(tmp_path):
    entry = zipfile.ZipInfo("resources/tool")
    entry.external_attr = (stat.S_IFREG | 0o750) << 16
    folder = unpack_archive(fmu(tmp_path, {entry: b"#!/bin/sh"}))
    assert os.access(folder / "resources" / "tool", os.X_OK)
    assert not os.access(folder / "modelDescription.xml", os.X_OK)


def test_a_zip_bomb(tmp_path, cache):
    path = fmu(tmp_path, {"zeros": bytes(120_000_000)})
    assert path.stat().st_size < 120_000
    fault = refusal(path)
    assert fault.what.startswith("the archive unpacks to more than 1")
    assert fault.expected == "at most 1000 times its own size"
    assert fault.hint == "do not trust this file: a zip bomb?"
    assert not list(cache.iterdir())


def test_sizes_that_an_archive_declares_are_not_believed(tmp_path):
    path = fmu(tmp_path, {"zeros": bytes(3_000_000)})
    content = bytearray(path.read_bytes())
    place = content.rindex(b"PK\1\2") + 24
    content[place : place + 4] = struct.pack("<L", 10)
    path.write_bytes(content)
    with pytest.raises(FileError):
        extract_archive(path, tmp_path / "out", Limits(unsuspicious=1_000_000, ratio=2))
    written = [file.stat().st_size for file in (tmp_path / "out").rglob("*") if file.is_file()]
    assert sum(written) <= 1_000_000


def test_bytes_are_counted_while_they_come(tmp_path, monkeypatch):
    path = fmu(tmp_path, {"zeros": bytes(5_000_000)})
    listed = lambda opened, *_: {entry.filename: entry for entry in opened.infolist()}  # noqa: E731
    monkeypatch.setattr(archive, "_safe_entries", listed)
    with pytest.raises(FileError, match="unpacks to more than 2,000,000 bytes"):
        extract_archive(path, tmp_path / "out", Limits(size=2_000_000))
    assert (tmp_path / "out" / "zeros").stat().st_size <= 2_000_000


def test_too_much_in_all(tmp_path):
    path = fmu(tmp_path, {"a": os.urandom(6000), "b": os.urandom(6000)})
    with pytest.raises(FileError) as caught:
        extract_archive(path, tmp_path / "out", Limits(size=10_000))
    (fault,) = caught.value.faults
    assert fault.what == "the archive unpacks to more than 10,000 bytes"
    assert fault.expected == "at most 10,000 bytes"
    assert fault.hint == "unpack it yourself, and name the folder"


def test_too_many_files(tmp_path):
    path = fmu(tmp_path, {str(n): b"" for n in range(20)})
    with pytest.raises(FileError) as caught:
        extract_archive(path, tmp_path / "out", Limits(files=10))
    assert caught.value.faults[0].what == "the archive holds 21 files"
    assert caught.value.faults[0].expected == "at most 10"


def test_a_file_where_a_folder_must_be(tmp_path):
    fault = refusal(fmu(tmp_path, {"a": b"x", "a/b": b"y"}))
    assert fault.what.startswith("the archive cannot be unpacked: ")


def test_the_cache_folder(tmp_path, monkeypatch):
    assert cache_folder() == (tmp_path / "cache" / "fmus").resolve()
    assert cache_folder("ssps") == (tmp_path / "cache" / "ssps").resolve()
    monkeypatch.delenv("HOCKET_CACHE")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    archive._cache_folder.cache_clear()
    assert cache_folder() == (tmp_path / "own" / "hocket" / "fmus").resolve()
    archive._cache_folder.cache_clear()


def test_where_nothing_can_be_written_a_temporary_folder_serves(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("HOCKET_CACHE", str(blocked))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = cache_folder()
    assert folder.is_relative_to(tmp_path.resolve())
    assert unpack_archive(fmu(tmp_path)).parent == folder


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no users to tell apart")
def test_a_temporary_folder_others_can_write_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    planted = tmp_path / f"hocket-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    assert archive._temporary() != planted
    planted.chmod(0o700)
    assert archive._temporary() == planted


def test_no_space(tmp_path, monkeypatch):
    path = fmu(tmp_path)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "chmod", full)
    entry = zipfile.ZipInfo("tool")
    entry.external_attr = (stat.S_IFREG | 0o755) << 16
    fault = refusal(fmu(tmp_path, {entry: b""}, name="other.fmu"))
    assert fault.what == "the archive cannot be unpacked: [Errno 28] No space left on device"
    assert fault.hint == "set HOCKET_CACHE to a folder with space"
    assert unpack_archive(path)
