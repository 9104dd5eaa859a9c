"""A page opened in headless Chromium: what its elements are after its script ran."""

from __future__ import annotations

import os
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

Element = tuple[str, dict[str, str]]


class Page(HTMLParser):
    """The elements of a page, with their attributes, and all of its text."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.words: list[str] = []
        self._silent = 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._silent += tag in ("script", "style")

    def handle_endtag(self, tag):
        self._silent -= tag in ("script", "style")

    def handle_data(self, data):
        if not self._silent:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    @property
    def body(self) -> dict[str, str]:
        return next(attributes for tag, attributes in self.elements if tag == "body")

    def having(self, *classes: str, tag: str = "") -> list[dict[str, str]]:
        """The attributes of the elements with all these classes."""
        return [
            attributes
            for name, attributes in self.elements
            if (not tag or name == tag) and set(classes) <= set(attributes.get("class", "").split())
        ]


def opened(file: Path, folder: Path, script: str = "", width: int = 1400) -> Page:
    """Return the page as Chromium has it; `script` is run in a copy of it, after its own."""
    if script:
        copy = folder / "scripted.html"
        text = file.read_text(encoding="utf-8")
        copy.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
        file = copy
    return Page(_chromium(file, folder, width, "--dump-dom"))


def painted(file: Path, folder: Path, dark: bool) -> Path:
    """Return a picture of the top of the page."""
    picture = folder / f"{'dark' if dark else 'light'}.png"
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    _chromium(file, folder, 1000, scheme, f"--screenshot={picture}")
    return picture


def _chromium(file: Path, folder: Path, width: int, *options: str) -> str:
    if os.environ.get("HOCKET_NO_BROWSER"):
        pytest.skip("HOCKET_NO_BROWSER is set")
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    assert browser, "there is no chromium: install it, or set HOCKET_NO_BROWSER"
    done = subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--window-size={width},1200",
            f"--user-data-dir={folder / 'profile'}",
            *options,
            file.resolve().as_uri(),
        ],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    return done.stdout
