"""The public logs beside the repository, for tests that want real files."""

from __future__ import annotations

from pathlib import Path

import pytest

CORPUS = Path(__file__).resolve().parents[1].parent / "shared" / "corpus"


def case(number: str) -> str:
    """The folder of a case such as "L15"; skips the test if the logs are not there."""
    if not CORPUS.is_dir():
        pytest.skip("the public logs are not beside this repository")
    return str(next(CORPUS.glob(f"{number}-*")))
