"""What a verb leaves behind: JSON, pictures, run folders; and what cannot be written, refused beforehand.

In:  facts or measures, and where they shall go: a file, or - for the screen
Out: files there
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import hocket
from hocket.analysis.measure import Measure
from hocket.cli.json_documents import json_document
from hocket.cli.terminal import print_err, print_out
from hocket.engine.recording import write_error
from hocket.errors import FileError, HocketError, ScenarioError
from hocket.files.atomic_files import write_text
from hocket.files.plotting import check_drawable


def write_json(target: Path, verb: str, facts: Mapping[str, Any]) -> None:
    """Write the facts of a verb as JSON, or print them."""
    text = json.dumps(json_document(verb, facts), indent=2, allow_nan=False) + "\n"
    if str(target) == "-":
        print(text, end="")
    else:
        write_text(target, text)


@contextmanager
def run_folder(folder: Path | None, stem: str, overwrite: bool) -> Iterator[Path]:
    """Give the folder of the run; if it is new and nothing was recorded, a faulty scenario leaves none."""
    if overwrite and folder is None:
        hint = "leave it out: without --folder there is a new folder in runs/ each time"
        raise ScenarioError("`--overwrite` needs `--folder`", "", "the folder that is replaced", hint)
    if folder is not None and not overwrite and _open_if_run(folder):
        hint = "choose another folder, or replace that run with --overwrite"
        raise FileError(f"`{folder.name}` holds a run already", str(folder), "", hint)
    new = folder is None or not folder.exists()
    place = _make_next_folder(stem) if folder is None else folder
    try:
        yield place
    except ScenarioError:
        if new and not any(run and run.ports for run in map(_open_if_run, [place, *_folder_entries(place)])):
            shutil.rmtree(place, ignore_errors=True)
            if folder is None:
                with suppress(OSError):
                    place.parent.rmdir()
        raise
    except KeyboardInterrupt as error:
        error.add_note(f"every row that was written is kept in {place}")
        raise


def _folder_entries(place: Path) -> list[Path]:
    return list(place.iterdir()) if place.is_dir() else []


def open_noted_run(folder: Path) -> hocket.Run:
    """Open a run; say on stderr what is to be known of how whole it is."""
    opened = hocket.open_run(folder)
    print_err(*(f"note: {note}" for note in opened.integrity_notes))
    return opened


def _open_if_run(folder: Path) -> hocket.Run | None:
    try:
        return hocket.open_run(folder)
    except HocketError:
        return None


def _make_next_folder(stem: str) -> Path:
    """Make the next of the folders runs/stem-001, runs/stem-002 ..."""
    runs = Path("runs")
    numbered = re.compile(re.escape(stem) + r"-(\d{3,})")
    try:
        names = (numbered.fullmatch(path.name) for path in (runs.iterdir() if runs.is_dir() else ()))
        newest = max((int(name[1]) for name in names if name), default=0)
        for number in count(newest + 1):
            folder = runs / f"{stem}-{number:03}"
            with suppress(FileExistsError):  # another run may have begun just now
                folder.mkdir(parents=True)
                return folder
    except OSError as error:
        raise write_error(runs, error) from error
    raise AssertionError("numbers do not end")


def check_outputs(
    as_json: Path | None = None,
    plot: Path | None = None,
    pictures: Iterable[str | None] = ("",),
    others: Iterable[Path | None] = (),
) -> None:
    """Refuse what cannot be written, before anything is computed; `pictures` is what measures call theirs."""
    for name in pictures:
        if plot is not None and name is not None:
            check_picture(_picture_path(plot, name))
    for target in (*others, as_json):
        if target and str(target) != "-":
            check_file(target)


def check_scenario_target(
    target: Path, sources: Iterable[Path] = (), where: str = "--out", endings: Sequence[str] = (".toml",)
) -> None:
    """Refuse a file that a scenario cannot be written to, and the scenario that it is made from."""
    check_file(target)
    if target.suffix.lower() not in endings:
        what = f"`{target.name}` is not a name for a scenario"
        raise FileError(what, where, f"a name that ends in {' or '.join(endings)}")
    if any(target.resolve() == source.resolve() for source in sources):
        hint = "another name: the scenario is not replaced"
        raise FileError(f"`{target.name}` is the scenario itself", where, "another file", hint)


def with_size(file: Path) -> str:
    """Return the name of a file that was written, and how large it is."""
    return f"{file} ({file.stat().st_size / 1000:,.0f} kB)"


def print_written(*files: object) -> None:
    """Print which files were written; None is none."""
    print_out(*(f"wrote {file}" for file in files if file))


def _picture_path(plot: Path, name: str) -> Path:
    """Return the file of one measure's picture, beside that of the others."""
    return plot.with_stem(f"{plot.stem}-{name}") if name else plot


def draw_measures(measures: Iterable[Measure], plot: Path | None) -> list[Path]:
    """Draw the measures that have something to say and a picture; return the files."""
    drawn: list[Path] = []
    for each in measures:
        if plot is not None and each.picture is not None and (each.rows() or each.verdict()):
            target = _picture_path(plot, each.picture)
            try:
                each.plot(target)
                drawn.append(target)
            except ScenarioError as error:
                print_err(f"no picture of {each.title}: {error.faults[0].what}; try {error.faults[0].hint}")
    return drawn


def check_file(target: Path) -> None:
    """Refuse a file in a folder that does not exist, and one that is a folder."""
    if not target.absolute().parent.is_dir():
        what = f"there is no folder `{target.parent}` to write `{target.name}` into"
        raise FileError(what, str(target), "a folder that exists")
    if target.is_dir():
        raise FileError(f"`{target.name}` is a folder", str(target), "the name of a file")


def check_picture(target: Path) -> None:
    """Refuse what no picture can be written to."""
    check_file(target)
    check_drawable(target)
