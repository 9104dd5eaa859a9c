"""Benchmarks, drawings and tools stand outside the package: they still import what is there."""

import ast
import subprocess
import sys

import pytest

from systems import ROOT

SCRIPTS = sorted(
    path for folder in ("benchmarks", "docs/pictures", "tools") for path in (ROOT / folder).glob("*.py")
)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_can_be_imported(script):
    """Nothing runs: all that a script does stands behind `if __name__ == "__main__"`."""
    assert "__main__" in ast.unparse(ast.parse(script.read_text()))
    program = (
        "import runpy, sys\nsys.path.insert(0, sys.argv[1])\nrunpy.run_path(sys.argv[2], run_name='script')\n"
    )
    words = [sys.executable, "-c", program, str(script.parent), str(script)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
