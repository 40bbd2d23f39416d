from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test finds the results of another, or leaves its own with the user."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("STALL_CACHE_DIR", str(folder))
    return folder
