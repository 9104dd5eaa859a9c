"""What was judged, kept as it comes: a search that was stopped goes on where it was.

In:  a file, and what the search is about
Out: the numbers of points, each known once
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from hocket.errors import FileError
from hocket.files import toml
from hocket.tuning.judge import Numbers, PointJudge
from hocket.tuning.space import Point


def search_identity(judging: PointJudge) -> str:
    """Return what a search is about, as a text that differs where the search does."""
    variables = [(each.name, each.words) for each in judging.space.variables]
    names = [each.name for each in judging.wanted]
    files = [Path(name.rpartition(":")[0]) for name in names if ".py:" in name]
    texts = [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    return repr(
        (toml.dumps(judging.composite, strict=False), variables, names, texts, judging.start, judging.stop)
    )


class Journal:
    """Points with their numbers; in a file, a line for each, if there is a file.

    `facts` were found out before the search and stay the same when it goes on.
    """

    def __init__(self, path: Path | None, about: str, facts: Callable[[], Any] = lambda: None):
        self.known: dict[Point, Numbers] = {}
        self.facts: Any = None
        self._file: TextIO | None = None
        if path is None:
            self.facts = facts()
            return
        mark = sha256(about.encode()).hexdigest()
        if path.exists() and b"\n" in path.read_bytes():
            self._read(path, mark)
        else:
            self.facts = facts()
            head = {"hocket_tune": 1, "about": mark, "facts": self.facts}
            path.write_text(json.dumps(head) + "\n", encoding="utf-8")
        self._file = path.open("a", encoding="utf-8")

    def _read(self, path: Path, mark: str) -> None:
        lines = path.read_text(encoding="utf-8").split("\n")
        try:
            head = json.loads(lines[0])
            self.facts = head["facts"]
            if head["about"] != mark:
                what = f"`{path.name}` is about another search"
                raise FileError(
                    what, str(path), "the same scenario, space and objectives", "another folder: --folder"
                )
            for line in lines[1:-1]:  # the last one may have been cut off
                facts: dict[str, Any] = json.loads(line)
                self.known[tuple(facts["point"])] = tuple(map(float, facts["numbers"]))
        except (json.JSONDecodeError, KeyError, TypeError, IndexError):
            raise FileError(f"`{path.name}` cannot be read", str(path), "what `hocket tune` wrote") from None
        if lines[-1]:
            path.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")

    def add(self, points: Sequence[Point], numbers: Sequence[Numbers]) -> None:
        """Keep what was judged, at once."""
        self.known.update(zip(points, numbers, strict=True))
        if self._file is not None:
            for point, each in zip(points, numbers, strict=True):
                told = [repr(value) for value in each]
                self._file.write(json.dumps({"point": list(point), "numbers": told}) + "\n")
            self._file.flush()

    def missing(self, points: Sequence[Point]) -> list[Point]:
        """Return those that are not known, each once."""
        return [point for point in dict.fromkeys(points) if point not in self.known]

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
