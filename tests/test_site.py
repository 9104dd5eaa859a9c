"""The documentation site builds without a warning, and its search finds the words of the glossary."""

import json
import os
import re
import subprocess
import sys

import pytest

from systems import ROOT


@pytest.mark.slow
def test_the_site_builds_and_finds_its_words(tmp_path):
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    index = json.loads((tmp_path / "search/search_index.json").read_text())
    pages = " ".join(f"{entry['title']} {entry['text']}" for entry in index["docs"]).lower()
    glossary = (ROOT / "docs/glossary.md").read_text()
    terms = [term for row in re.findall(r"^\| ([^|]+?) \|", glossary, re.M) for term in row.split(", ")]
    assert len(terms) >= 40
    assert [term for term in terms if term.replace("`", "").lower() not in pages] == []
