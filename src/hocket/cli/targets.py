"""Files that a verb shall write: refused before the work, not after it.

In:  paths as they were typed
Out: nothing, or a FileError
"""

from __future__ import annotations

from pathlib import Path

from hocket.errors import FileError
from hocket.files.drawing import check_drawable


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
