from __future__ import annotations

import signal
from pathlib import Path

import pytest


def pytest_configure() -> None:
    # A job in the background ignores Ctrl-C, and so would every process that a test starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test finds the results of another, or leaves its own in the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("STALL_CACHE_DIR", str(folder))
    return folder
