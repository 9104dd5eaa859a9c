"""What every test stands on: FMUs are unpacked into folders of the session, not into the user's cache."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Unpack FMUs where nobody else does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOCKET_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("HOCKET_FIRST_CONTACT", "0")  # a process for every FMU; test_fmu_first_contact.py has it
        yield


@pytest.fixture
def fresh_cache(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpack FMUs where no test before has unpacked any."""
    monkeypatch.setenv("HOCKET_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C through, here and in child processes, also where the shell around ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
