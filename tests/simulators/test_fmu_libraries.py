"""What a binary needs is looked for as the loader does; what is missing is named; sources are compiled."""

import subprocess
import zipfile

import numpy as np
import pytest

import hocket as hk
from command_line import good, refused
from fmus.build import HERE, build
from fmus.table import header, read
from hocket.errors import FileError, SimulatorError
from hocket.simulators.fmu.libraries import debian_package, describe_unfit_binary, missing_libraries

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"


def library(path, source="int f(void) { return 1; }", *options):
    """Compile a shared library."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_suffix(".c")
    file.write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", str(file), "-o", str(path), *map(str, options)], check=True)
    return path


def needing(folder, *names, options=()):
    """Compile a library that needs others, which are taken away afterwards."""
    for number, name in enumerate(names):
        library(folder / "lib" / name, f"int f{number}(void) {{ return 1; }}", f"-Wl,-soname,{name}")
    calls = " + ".join(f"f{number}()" for number in range(len(names)))
    heads = "".join(f"int f{number}(void);" for number in range(len(names)))
    found = [folder / "lib" / name for name in names]
    return library(folder / "main.so", f"{heads} int g(void) {{ return {calls}; }}", *found, *options)


def test_all_that_is_missing_is_named_at_once(tmp_path):
    main = needing(tmp_path, "libgfortran.so.3", "libnowhere.so.9", "libpython3.99.so.1.0")
    told = [str(each) for each in missing_libraries(main)]
    assert told == [
        "`libgfortran.so.3` (Debian package libgfortran3)",
        "`libnowhere.so.9`",
        "`libpython3.99.so.1.0` (Debian package libpython3.99)",
    ]
    assert debian_package("libboost_date_time.so.1.74.0") == "libboost-date-time1.74.0"


@pytest.mark.parametrize("tags", ["--enable-new-dtags", "--disable-new-dtags"])
def test_beside_the_binary(tags, tmp_path):
    """$ORIGIN in RUNPATH and RPATH; RPATH counts for the libraries of libraries too."""
    main = needing(tmp_path, "libone.so.1", options=(f"-Wl,{tags}", "-Wl,-rpath,$ORIGIN/lib"))
    assert missing_libraries(main) == ()
    deep = library(
        tmp_path / "lib" / "libone.so.1",
        "int h(void); int f0(void) { return h(); }",
        "-Wl,-soname,libone.so.1",
        library(tmp_path / "lib" / "libdeep.so", "int h(void) { return 2; }", "-Wl,-soname,libdeep.so"),
    )
    inherited = tags == "--disable-new-dtags"
    assert [each.name for each in missing_libraries(main)] == ([] if inherited else ["libdeep.so"])
    deep.unlink()
    (tmp_path / "main.so").touch()
    assert [each.name for each in missing_libraries(main)] == ["libone.so.1"]


def test_the_search_path_of_the_environment(tmp_path, monkeypatch):
    main = needing(tmp_path, "libone.so.1")
    assert [each.name for each in missing_libraries(main)] == ["libone.so.1"]
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere:{tmp_path / 'lib'}")
    assert missing_libraries(main) == ()


def test_versions_of_a_library(tmp_path):
    """The version that a binary was linked against is newer than the one that is here."""
    script = tmp_path / "versions"
    script.write_text("V_1.2 { global: f0; };")
    new = library(
        tmp_path / "lib" / "libone.so.1",
        "int f0(void) { return 1; }",
        "-Wl,-soname,libone.so.1",
        f"-Wl,--version-script={script}",
    )
    source = "int f0(void); int g(void) { return f0(); }"
    main = library(tmp_path / "main.so", source, new, "-Wl,-rpath,$ORIGIN/lib")
    assert missing_libraries(main) == ()
    script.write_text("V_1.1 { global: f0; };")
    library(new, "int f0(void) { return 1; }", "-Wl,-soname,libone.so.1", f"-Wl,--version-script={script}")
    main.touch()
    (one,) = missing_libraries(main)
    assert str(one) == "`V_1.2` of `libone.so.1` (here up to V_1.1)"


def test_files_that_are_not_libraries(tmp_path):
    main = library(tmp_path / "main.so")
    assert describe_unfit_binary(main) == ""
    content = main.read_bytes()
    for text, expected in (
        (POINTER, "Git-LFS pointer"),
        (b"MZ" + content, "not a shared library of Linux"),
        (content[: len(content) // 2], "cut off"),
        (content[:18] + b"\xb7\x00" + content[20:], "for aarch64, and this Python for"),
    ):
        main.write_bytes(text)
        assert expected in describe_unfit_binary(main)
        assert missing_libraries(main) == ()


def test_an_fmu_that_needs_what_is_not_here(tmp_path):
    binary = needing(tmp_path, "libgfortran.so.3", "libnowhere.so.9").read_bytes()
    file = build("lag", 2, folder=tmp_path, binary=binary)
    shown = " ".join(good("show", file).split())
    assert (
        "runs here no: it needs `libgfortran.so.3` (Debian package libgfortran3), `libnowhere.so.9`" in shown
    )
    with pytest.raises(
        SimulatorError, match=r"`libgfortran\.so\.3` .*, `libnowhere\.so\.9`, which"
    ) as caught:
        hk.Fmu(file, interface="co-simulation").open()
    assert caught.value.faults[0].hint == "on Debian: apt install libgfortran3"


def test_git_lfs_pointers(tmp_path):
    file = tmp_path / "x.fmu"
    file.write_bytes(POINTER)
    with pytest.raises(FileError, match="the file is a Git-LFS pointer, not the archive itself"):
        hk.Fmu(file)
    inside = build("lag", 2, folder=tmp_path, binary=POINTER)
    shown = " ".join(good("show", inside).split())
    assert "runs here no: the file is a Git-LFS pointer" in shown
    assert "lacks the functions" not in shown  # nobody knows which the library itself has
    assert "git lfs pull" in shown
    with pytest.raises(SimulatorError, match="Git-LFS pointer") as caught:
        hk.Fmu(inside).open()
    assert caught.value.faults[0].hint.startswith("`git lfs pull`")


def test_windows_binaries_only(tmp_path):
    file = build("lag", 2, folder=tmp_path, platform="win64")
    with pytest.raises(FileError, match="no binary for this platform") as caught:
        hk.Fmu(file).open()
    assert "Windows only" in caught.value.faults[0].hint
    assert "Wine" in caught.value.faults[0].hint


# building


def with_sources(tmp_path, version, change=lambda text: text):
    """Build an FMU of source code only, out of the frame and the model of a test FMU."""
    model = read("lag", version, {})
    frame, name = f"frame{version}.c", model.source.name
    files = {f"sources/{each}": (HERE / each).read_text() for each in ("frame.h", "model.h", frame)}
    files |= {"sources/table.h": header(model), f"sources/{name}": change(model.source.read_text())}
    listed = "".join(f'<File name="made_{each}"/>' for each in (frame, name))
    for each in (frame, name):
        files[f"sources/made_{each}"] = f'#define FMI {version}\n#include "{each}"\n'
    file = build("lag", version, folder=tmp_path, interfaces=["cs"], binary=None)
    if version == 3:
        files["sources/buildDescription.xml"] = (
            '<fmiBuildDescription fmiVersion="3.0"><BuildConfiguration modelIdentifier="lag">'
            f'<SourceFileSet><SourceFile name="{frame}"/><SourceFile name="{name}"/>'
            f'<PreprocessorDefinition name="FMI" value="{version}"/></SourceFileSet>'
            "</BuildConfiguration></fmiBuildDescription>"
        )
    packed = tmp_path / "sources.fmu"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(packed, "w") as new:
        for entry in old.namelist():
            text = old.read(entry).decode()
            if version == 2 and entry == "modelDescription.xml":
                head, tail = text.split("<CoSimulation", 1)
                inner, rest = tail.split("/>", 1)
                text = f"{head}<CoSimulation{inner}><SourceFiles>{listed}</SourceFiles></CoSimulation>{rest}"
            new.writestr(entry, text)
        for entry, text in files.items():
            new.writestr(entry, text)
    return packed


@pytest.mark.parametrize("version", [2, 3])
def test_sources_are_compiled_where_that_is_asked_for(version, tmp_path, monkeypatch):
    file = with_sources(tmp_path, version)
    with pytest.raises(FileError, match="no binary for this platform") as caught:
        hk.Fmu(file).open()
    assert "--build" in caught.value.faults[0].hint
    assert "compiled from its sources" in good("show", file, "--build")
    fmu, whole = hk.Fmu(file, build=True), hk.Fmu(build("lag", version, folder=tmp_path))
    assert fmu.options == {"build": True}
    runs = [hk.run(hk.Composite(hk.Scenario({"lag": model}), "0.1 s"), 1) for model in (fmu, whole)]
    assert np.array_equal(runs[0]["lag.y"].values, runs[1]["lag.y"].values)
    # once
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CC", "")
    assert fmu.binary.is_file()


def test_what_a_compiler_says(tmp_path, monkeypatch):
    file = with_sources(tmp_path, 3, lambda text: text + "\n#error the sea is rough\n")
    assert "the sea is rough" in refused("run", file, "--build")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(FileError, match="there is no C compiler"):
        hk.Fmu(with_sources(tmp_path, 3), build=True).open()


def test_nothing_to_compile(tmp_path):
    with pytest.raises(FileError, match="it brings no sources to build it from"):
        hk.Fmu(build("lag", 2, folder=tmp_path, binary=None), build=True).open()
