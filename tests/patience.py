"""Waiting for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable

# It only guards against waiting forever: on a machine with more to do than cores, importing
# TensorFlow takes a minute, and a thread may not run for seconds.
PATIENCE_S = 300.0


def happens(what: Callable[[], object], within_s: float = PATIENCE_S) -> bool:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if what():
            return True
        time.sleep(0.01)
    return False
