"""The time in which a training that never continues stood still."""

from __future__ import annotations

import numpy as np

from stall_analyzer.diagnose.stood_still import time_before, with_time_stood_still
from stall_analyzer.model.causes import code
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.signals.ending.stall import STUCK, Stall

S = 1_000_000_000
BEGUN_NS = 1_700_000_000 * S


def stuck_after(seconds: int) -> Stall:
    since_ns = BEGUN_NS + seconds * S
    return Stall(STUCK, since_ns, since_ns + 100 * S, step=20, why="nothing moves", blamed=None)


def ledger(*parts: tuple[int, str]) -> Ledger:
    bounds = np.cumsum([0, *(seconds for seconds, _ in parts)]) * PS_PER_S
    causes = np.array([code(cause) for _, cause in parts], dtype=np.uint8)
    return Ledger(bounds, causes, np.zeros(len(parts), dtype=np.bool_))


def test_what_its_steps_cost_ends_where_it_stops() -> None:
    epoch = ledger((2, "input.wait"), (3, "compute.step"), (95, "input.wait"))
    stall = stuck_after(6)
    assert time_before(stall, epoch, BEGUN_NS, ("input",)) == 3 * PS_PER_S
    assert time_before(stall, epoch, BEGUN_NS, ("input", "compute")) == 6 * PS_PER_S
    assert time_before(stall, epoch, BEGUN_NS, ()) == 6 * PS_PER_S


def test_of_what_it_waits_for_nothing_is_known_if_no_thread_is_blamed() -> None:
    epoch = ledger((2, "input.wait"), (98, "compute.step"))
    assert with_time_stood_still(epoch, stuck_after(6), BEGUN_NS) is epoch
