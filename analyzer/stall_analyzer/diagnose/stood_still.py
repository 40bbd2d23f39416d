"""The time in which training was stopped, in the ledger.

Clocks know that a call of the step was in progress, but not what it waited for, because such a call
never returned. The looks at the process are more reliable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stall_analyzer.model.causes import BUCKETS, code, codes_of_bucket
from stall_analyzer.model.findings import Evidence
from stall_analyzer.model.intervals import among, time_in
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.units import PS_PER_NS
from stall_analyzer.signals.ending.stall import Stall
from stall_analyzer.signals.signals import Signals

CAUSES = {
    "input": "input.wait",
    "host": "host.python",
    "communication": "communication.collective",
}


def with_time_stood_still(ledger: Ledger, stall: Stall | None, begun_ns: int | None) -> Ledger:
    """Everything after the last sign of life counts as what the training waits for."""
    if stall is None or begun_ns is None or stall.went_on or stall.bucket not in CAUSES:
        return ledger
    since = (stall.since_ns - begun_ns) * PS_PER_NS
    ledger = ledger.cut_at(np.array([since]))
    told = np.concatenate([codes_of_bucket(stall.bucket), codes_of_bucket("profiler")])
    told = told[told != code("input.contention")]  # nothing computes that input could slow down
    stood = (ledger.bounds_ps[:-1] >= since) & ~among(ledger.cause, told)
    cause = np.where(stood, code(CAUSES[stall.bucket]), ledger.cause).astype(np.uint8)
    return replace(ledger, cause=cause)


def stopped_ps(signals: Signals) -> int | None:
    """When training last made progress, in window time, if it never continues: either it still
    stands still, or its wait ended with an error."""
    stall, ending = signals.stall, signals.ending
    begun_ns = signals.timeline.window.start_unix_ns
    if stall is not None and stall.never_goes_on and begun_ns is not None:
        return (stall.since_ns - begun_ns) * PS_PER_NS
    has_failed = ending is not None and ending.has_failed
    return signals.training_steps[-1].end_ps if has_failed and signals.training_steps else None


def is_after(stopped_ps: int, evidence: Sequence[Evidence]) -> bool:
    """Whether most of it lies in the time in which training was stopped."""
    lasted = sum(each.end_ps - each.start_ps for each in evidence)
    after = sum(max(each.end_ps - max(each.start_ps, stopped_ps), 0) for each in evidence)
    return after > lasted / 2


def time_before(stopped_ps: int, ledger: Ledger, buckets: Sequence[str]) -> int:
    """What these buckets took until training stopped; all buckets, if none are named."""
    since = np.array([stopped_ps])
    blamed = np.concatenate([codes_of_bucket(bucket) for bucket in buckets or BUCKETS])
    return int(time_in(ledger.tiling, np.zeros_like(since), since, blamed)[0])
