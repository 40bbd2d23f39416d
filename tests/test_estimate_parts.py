"""How time that was not traced is divided among the parts of an estimate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stall_analyzer.model.causes import BUCKETS, CAUSES, code
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.signals.estimate.parts import Part, likely_ledger, ranges


def test_what_later_epochs_lack_is_given_to_the_parts_that_came_once() -> None:
    """Event files alone: 4 s of 10 s came once, and nothing was traced."""
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


parts_of_an_epoch = st.lists(
    st.builds(
        Part,
        likely_ps=st.dictionaries(st.sampled_from(CAUSES), st.floats(0, 1e12), max_size=4),
        once=st.booleans(),
        doubt=st.floats(0, 1),
        rivals=st.lists(st.sampled_from(BUCKETS), max_size=3).map(tuple),
    ),
    max_size=6,
)
segments = st.lists(
    st.tuples(st.integers(1, 10**12), st.sampled_from(CAUSES), st.booleans()), min_size=1
)


def ledger_of(tiles: Sequence[tuple[int, str, bool]]) -> Ledger:
    bounds = np.cumsum([0, *(ps for ps, _, _ in tiles)])
    causes = np.array([code(cause) for _, cause, _ in tiles], dtype=np.uint8)
    return Ledger(bounds, causes, np.array([once for _, _, once in tiles]))


@given(segments, parts_of_an_epoch)
def test_whatever_the_parts_claim_time_is_conserved(
    tiles: Sequence[tuple[int, str, bool]], parts: list[Part]
) -> None:
    """What was traced stays as it was, and what was not is given to at most one part."""
    exact = ledger_of(tiles)
    likely = likely_ledger(exact, parts)
    whole = int(exact.bounds_ps[-1])
    assert sum(likely.causes_ps.values()) == whole
    for cause, ps in exact.causes_ps.items():
        assert cause == "unknown.not_traced" or likely.causes_ps.get(cause, 0) >= ps
    found = ranges(likely, exact, parts)
    for bucket, ps in likely.buckets_ps.items():
        assert 0 <= found[bucket].low_ps <= ps <= found[bucket].high_ps <= whole
        if bucket != "unknown":
            assert found[bucket].low_ps >= exact.buckets_ps[bucket]
