"""How what was not traced is given to the parts of an estimate."""

from __future__ import annotations

import numpy as np

from stall_analyzer.model.causes import code
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.signals.estimate.parts import Part, likely_ledger


def test_what_later_epochs_lack_is_given_to_the_parts_that_came_once() -> None:
    """Event files alone: of 10 s, 4 came once, and nothing was traced of either."""
    exact = Ledger(
        np.array([0, 4, 10]) * PS_PER_S,
        np.full(2, code("unknown.not_traced"), dtype=np.uint8),
        np.array([True, False]),
    )
    parts = [
        Part({"compile.tracing": 4 * PS_PER_S}, True, 0.1),
        Part({"compute.step": 6 * PS_PER_S}, False, 0.1),
    ]
    likely = likely_ledger(exact, parts)
    assert likely.one_time_ps() == likely.buckets_ps["compile"] == 4 * PS_PER_S
    assert likely.buckets_ps["compute"] == 6 * PS_PER_S
