"""Runs verbs on hostile files under an audit hook, in a process of its own; prints what was loaded."""

import json
import os
import sys
import time

from typer.testing import CliRunner

from hocket.cli import app

EVENTS = {
    "import",
    "exec",
    "compile",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "subprocess.Popen",
    "ctypes.dlopen",
}
heard: list[str] = []


def hear(event: str, arguments: tuple[object, ...]) -> None:
    if event not in EVENTS:
        return
    told = str(arguments)
    if event == "import":
        told = f"{arguments[0]} {arguments[1]}"
    elif event == "exec":
        told = getattr(arguments[0], "co_filename", told)
    elif event == "compile":
        told = str(arguments[1])
    if "evil" in told or "hostile" in told:
        heard.append(f"{event} {told:.200}")


def main(jobs: list[list[str]]) -> None:
    sys.addaudithook(hear)
    for words in jobs:
        heard.clear()
        begun = time.perf_counter()
        result = CliRunner().invoke(app, words, prog_name="hocket")
        crash = result.exception if not isinstance(result.exception, (SystemExit, type(None))) else None
        answer = {
            "words": words,
            "code": result.exit_code,
            "heard": list(heard),
            "crash": repr(crash) if crash else "",
            "said": result.output[:4000],
            "took": time.perf_counter() - begun,
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    os.environ.pop("HOCKET_NO_CODE", None)
    main(json.loads(sys.stdin.read()))
