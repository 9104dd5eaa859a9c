"""Damage to the tables that the loader follows is found before a library is loaded; whole ones are whole."""

import struct
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import hocket as hk
from fmus.build import build
from hocket.simulators.fmu.elf_structure import find_damage
from hocket.simulators.fmu.recipe import Fmu

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ELF is of Linux")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A shared library, with all the tables of linkers."""
    return Fmu(build("types", 2, folder=tmp_path_factory.mktemp("types"))).binary.read_bytes()


def sections(content):
    """Offset and length of each section, by name: the loader reads other tables, so nothing is shared."""
    (begin,) = struct.unpack_from("<Q", content, 40)
    size, count, names = struct.unpack_from("<HHH", content, 58)
    rows = [struct.unpack_from("<IIQQQQ", content, begin + size * k) for k in range(count)]
    texts = rows[names][4]

    def name(row):
        start = texts + row[0]
        return content[start : content.index(b"\0", start)].decode()

    return {name(row): (row[4], row[5]) for row in rows}


def damage(tmp_path, content):
    file = tmp_path / "library.so"
    file.write_bytes(content)
    find_damage.cache_clear()
    return find_damage(str(file), 0, len(content))


def flip(content, place, bit):
    changed = bytearray(content)
    changed[place + bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_whole_libraries_are_whole(tmp_path, library):
    assert damage(tmp_path, library) == ""
    folders = (Path(np.__file__).parent, Path(sysconfig.get_config_var("DESTSHARED")))
    found = [file for folder in folders for file in sorted(folder.rglob("*.so"))]
    assert len(found) > 20
    assert not [
        (file.name, told) for file in found if (told := find_damage(str(file), 0, file.stat().st_size))
    ]


@pytest.mark.parametrize("table", [".rela.dyn", ".rela.plt"])
def test_a_relocation_that_leads_out_of_the_library(tmp_path, library, table):
    """It would write into the memory of others: by chance nothing happens, or the process ends."""
    begin, length = sections(library)[table]
    assert length
    for place in range(begin, begin + length, 24):
        for bit in range(20, 64):  # a megabyte, and more
            assert "relocation leads out" in damage(tmp_path, flip(library, place, bit)), (place, bit)
        if struct.unpack_from("<Q", library, place + 8)[0] >> 32:  # it has a symbol
            told = damage(tmp_path, flip(library, place + 12, 20))
            assert told == "a relocation names a symbol that is not there"


def test_pointers_and_functions_that_lead_elsewhere(tmp_path, library):
    begin, length = sections(library)[".rela.dyn"]
    relative = [
        place
        for place in range(begin, begin + length, 24)
        if struct.unpack_from("<I", library, place + 8)[0] == 8
    ]
    assert relative
    for place in relative:
        for bit in (24, 40, 62):
            assert damage(tmp_path, flip(library, place + 16, bit))
    begin, length = sections(library)[".dynsym"]
    functions = [
        place
        for place in range(begin, begin + length, 24)
        if library[place + 4] & 15 == 2 and struct.unpack_from("<H", library, place + 6)[0]
    ]
    assert len(functions) > 10
    for place in functions:
        assert damage(tmp_path, flip(library, place + 8, 24)) == "a function leads out of its code"
        assert "name of a symbol" in damage(tmp_path, flip(library, place, 20))


def test_versions_segments_and_the_dynamic_section(tmp_path, library):
    tables = sections(library)
    assert "version" in damage(tmp_path, flip(library, tables[".gnu.version"][0] + 2, 9))
    assert "GNU_HASH" in damage(tmp_path, flip(library, tables[".gnu.hash"][0] + 8, 0))
    begin, length = tables[".dynamic"]
    filled = library[:begin] + (b"\x15" + bytes(15)) * (length // 16) + library[begin + length :]
    assert damage(tmp_path, filled) == "its dynamic section does not end"
    assert "cut off" in damage(tmp_path, library[: len(library) // 3])
    assert "cut off" in damage(tmp_path, library[:80])
    assert damage(tmp_path, b"MZ" + bytes(200)) == "", "another kind of file"


def test_a_damaged_library_is_refused_before_it_is_loaded(tmp_path, library):
    begin, _ = sections(library)[".rela.dyn"]
    path = build("types", 2, folder=tmp_path, binary=flip(library, begin, 24))
    with pytest.raises(hk.SimulatorError, match="the file is damaged: a relocation leads out of the library"):
        hk.run(Fmu(path, isolate=False), 0.1, step=0.1)
