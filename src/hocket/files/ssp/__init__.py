"""SSP: systems of FMUs as other tools exchange them, versions 1.0 and 2.0.

In:  an .ssp, a folder with the same content, or an .ssd; or an Experiment whose models are FMUs
Out: an Experiment; or an .ssp
"""

from __future__ import annotations

from pathlib import Path

from hocket.files.ssp.importing import SspImport, import_ssp
from hocket.files.ssp.package_writer import write_ssp
from hocket.model.experiment import Experiment


def read_ssp(path: Path | str, ssd: str = "") -> Experiment:
    """Return the experiment an SSP holds; raises FileError with every reason why it cannot be run.

    `ssd` chooses another description in the archive than `SystemStructure.ssd`. The notes of the experiment
    tell what was assumed on the way; `import_ssp` keeps the names that had to be changed.
    """
    return import_ssp(path, ssd).experiment


__all__ = ["SspImport", "import_ssp", "read_ssp", "write_ssp"]
