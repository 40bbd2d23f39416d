"""Waiting for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 60.0  # for what takes well under a second on a machine that is not busy


def happens(what: Callable[[], object], within_s: float = PATIENCE_S) -> bool:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if what():
            return True
        time.sleep(0.01)
    return False
