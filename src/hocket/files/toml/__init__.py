"""Scenario files: a co-simulation as TOML.

In:  the path of a scenario file, or its text
Out: a Study; and from a Study or a Composite the file again
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hocket.engine.composite import Composite
from hocket.errors import FileError, ScenarioError
from hocket.files.resources import with_resources
from hocket.files.study import Study
from hocket.files.toml import layout
from hocket.files.toml.checking import check as check_scenario
from hocket.files.toml.codec import FILE
from hocket.files.toml.document import opened, parsed
from hocket.files.toml.layout import Section
from hocket.files.toml.place import WRONG, Findings, Place, Source, Wrong


def read(path: Path | str, *, check: bool = True) -> Study:
    """Return what a scenario file holds; raises FileError with every fault in it, each with its line.

    Relative paths in the file start in its folder. With `check=False` code that the file names is not
    loaded, and names are not looked up: what is wrong with them shows when it is run.
    """
    findings = Findings(check)
    file = Path(path)
    study = _study(opened(file, findings), findings)
    return replace(study, path=file.absolute(), name=study.name or file.stem)


def loads(text: str, *, folder: Path | str = "", check: bool = True) -> Study:
    """Return what the text of a scenario file holds; relative paths in it start in `folder`."""
    findings = Findings(check)
    source = Source("", text, str(folder), (Path(folder).resolve() / "text",))
    return _study(parsed(source, findings), findings)


def write(what: Composite | Study, path: Path | str) -> None:
    """Write a scenario file that `read` turns into an equal composite; see `dumps`.

    FMUs out of an SSP are copied to a folder beside the file.
    """
    file = Path(path)
    study = with_resources(_as_study(what), file)
    named = replace(study, name="") if study.name == file.stem else study
    text = dumps(named, folder=file.absolute().parent)
    try:
        file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(
            f"`{file.name}` cannot be written: {reason}", str(file), "a place you may write to"
        ) from error


def dumps(what: Composite | Study, *, folder: Path | str = "", strict: bool = True) -> str:
    """Return the text of a scenario file for a file in `folder`.

    Raises ScenarioError for what has no name in a file: a lambda, a model of one's own. With `strict=False`
    such things are described in words: a record for people, which `loads` refuses.
    """
    findings = Findings()
    place = Place(findings, Source(folder=str(folder)))
    table = FILE.write(_as_study(what), place)
    if findings.faults and strict:
        raise ScenarioError(findings.in_order())
    return layout.text(Section(table))


def _as_study(what: Composite | Study) -> Study:
    return Study(what) if isinstance(what, Composite) else what


def _study(place: Place | Wrong, findings: Findings) -> Study:
    study = place if place is WRONG else FILE.read(place.source.table, place)
    if place is not WRONG and study is not WRONG and findings.check:
        check_scenario(study.composite, place)
    if findings.faults:
        raise FileError(findings.in_order())
    assert isinstance(study, Study)
    return study
