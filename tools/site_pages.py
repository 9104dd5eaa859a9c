"""Pages of the documentation site that are made from the source: a hook of MkDocs.

In:  the public names and their docstrings, the command line, examples, and the files beside docs/
Out: pages for MkDocs; links that lead out of docs/ lead to these pages
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
BESIDE = {
    "CONTRIBUTING.md": "developing/contributing.md",
    "SECURITY.md": "developing/security.md",
    "CHANGELOG.md": "reference/changes.md",
    "README.md": "index.md",
}
"""Pages that stand beside docs/, and where they are in the site."""
_LINK = re.compile(r"\]\(((?:\.\./)*(?:docs/|examples/|src/|tests/|tools/|\w+\.md)[^)\s]*)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here."""
    from mkdocs.structure.files import File

    made = {
        "reference/python.md": write_python_page(),
        "reference/command_line.md": write_command_page(),
        "reference/examples.md": write_example_page(),
        **{page: (ROOT / name).read_text() for name, page in BESIDE.items() if page != "index.md"},
    }
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let links that lead out of docs/ lead to pages of the site."""
    here = page.file.src_uri
    return _LINK.sub(lambda found: f"]({_target(found[1], here)})", markdown)


def write_python_page() -> str:
    """Return a page of all public names, in the order of their rooms."""
    import hocket

    parts = ["# Python", "", "All that `import hocket as hk` offers.", ""]
    for name in sorted(hocket.__all__, key=str.lower):
        parts += [f"::: hocket.{name}", ""] if name != "__version__" else []
    return "\n".join(parts)


def write_command_page() -> str:
    """Return a page of all verbs of the command line, as `--help` prints them."""
    head = _print_help()
    verbs = re.findall(r"^│ ([a-z]+)  ", head[head.index("─ Commands") :], re.M)
    parts = ["# Command line", "", "What `hocket --help` and `hocket VERB --help` print.", "", _fence(head)]
    for verb in verbs:
        parts += [f"## hocket {verb}", "", _fence(_print_help(verb))]
    return "\n".join(parts)


def write_example_page() -> str:
    """Return a page of all examples with their text."""
    parts = ["# Examples", "", "Every one of them is run by a test, and its numbers are checked.", ""]
    for path in sorted((ROOT / "examples").iterdir()):
        if path.suffix in (".py", ".toml"):
            language = {".py": "python", ".toml": "toml"}[path.suffix]
            parts += [f"## {path.name} {{ #{_anchor(path.name)} }}", "", _fence(path.read_text(), language)]
    return "\n".join(parts)


def _print_help(*verb: str) -> str:
    program = "import sys; from hocket.cli import main; main()"
    words = [sys.executable, "-c", program, *verb, "--help"]
    environment = {**os.environ, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def _fence(text: str, language: str = "text") -> str:
    return f"```{language}\n{text.strip()}\n```\n"


def _anchor(name: str) -> str:
    return re.sub(r"\W", "-", name)


def _target(link: str, here: str) -> str:
    """Return where a link to a file of the repository leads in the site."""
    path, _, part = re.sub(r"^(\.\./)+", "", link).partition("#")
    part = re.sub("-+", "-", part)  # headings with code: `--budget` has other anchors on other sites
    up = "../" * here.count("/")
    if path.startswith("docs/"):
        found = path.removeprefix("docs/")
    elif path in BESIDE:
        found = BESIDE[path]
    elif path.startswith("examples"):
        name = path.removeprefix("examples").strip("/")
        return f"{up}reference/examples.md" + (f"#{_anchor(name)}" if name else "")
    elif path.startswith(("src/", "tests/", "tools/")):
        found = "architecture.md"
    else:
        return link
    return up + found + (f"#{part}" if part else "")


if __name__ == "__main__":
    print(write_command_page())
