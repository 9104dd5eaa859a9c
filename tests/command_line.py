"""What the tests of the command line share: commands that must go well, fail, or be stopped."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from typer.testing import CliRunner, Result

from hocket.cli import app

COMMAND = [sys.executable, "-c", "from hocket.cli import main; main()"]


def invoked(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], prog_name="hocket")


def good(*words: str | Path) -> str:
    """Return the answer to a command that must go well; it may say what code it loads, what is unstable."""
    result = invoked(*words)
    assert result.exit_code == 0, result.output
    assert without_loads(result.stderr) == ""
    return result.stdout


def without_loads(text: str) -> str:
    """Return what was said but for the lines that tell which code is loaded, and that a run is unstable."""
    known = "loads `", "before the run: unstable: "
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(known))


def refused(*words: str | Path, code: int = 2) -> str:
    """Return what a command that must fail says on stderr."""
    result = invoked(*words)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert result.stdout == ""
    return without_loads(result.stderr)


def begun(folder: Path) -> None:
    """Wait until a run records."""
    deadline = time.monotonic() + 20
    while not list(folder.glob("samples/*.arrow")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.3)


def interrupted(words: list[str], folder: Path, signals: int = 1) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr of a command that gets Ctrl-C once a run in the folder records."""
    process = subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )
    try:
        begun(folder)
        for _ in range(signals):
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    return process.returncode, out, err
