"""How often Python looks for garbage in a process that analyzes runs."""

from __future__ import annotations

import gc

# Objects made while loading are never garbage: collecting among them takes longer than reading a
# small file.
COLLECT_AFTER = 100_000  # objects


def collect_rarely() -> None:
    gc.set_threshold(COLLECT_AFTER)
