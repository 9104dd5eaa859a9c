"""What the tests of the command line share."""

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder that commands are given in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
