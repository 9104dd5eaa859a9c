"""SSP: systems of FMUs as other tools exchange them, versions 1.0 and 2.0.

In:  an .ssp, a folder with the same content, or an .ssd; or a Study whose models are FMUs
Out: a Study; or an .ssp
"""

from __future__ import annotations

from pathlib import Path

from hocket.files.ssp.reading.importing import Imported, imported
from hocket.files.ssp.writing.archive import write_ssp
from hocket.files.study import Study


def read_ssp(path: Path | str, ssd: str = "") -> Study:
    """Return the study an SSP holds; raises FileError with every reason why it cannot be run.

    `ssd` chooses another description in the archive than `SystemStructure.ssd`. The notes of the study tell
    what was assumed on the way; `imported` keeps the names that had to be changed.
    """
    return imported(path, ssd).study


__all__ = ["Imported", "imported", "read_ssp", "write_ssp"]
