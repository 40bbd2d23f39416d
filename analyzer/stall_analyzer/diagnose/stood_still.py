"""The time in which a training stood still, in the ledger.

Clocks know that a call of the step was under way, and nothing of what it waited for: such a call
never came to its end. What the looks at a process say of it is surer.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stall_analyzer.model.causes import code, codes_of_bucket
from stall_analyzer.model.intervals import among
from stall_analyzer.model.ledger import HostLedger
from stall_analyzer.model.units import PS_PER_NS
from stall_analyzer.signals.signals import Signals

CAUSES = {
    "input": "input.wait",
    "host": "host.python",
    "communication": "communication.collective",
}


def with_time_stood_still(host: HostLedger, signals: Signals) -> HostLedger:
    """From the last sign of life on, all is what the training waits for and never gets."""
    stall, begun_ns = signals.stall, signals.timeline.window.start_unix_ns
    if stall is None or begun_ns is None or not stall.never_goes_on or stall.bucket not in CAUSES:
        return host
    if signals.estimate is not None:  # then that is what is shown
        return host
    since = (stall.since_ns - begun_ns) * PS_PER_NS
    ledger = host.ledger.cut_at(np.array([since]))
    told = np.concatenate([codes_of_bucket(stall.bucket), codes_of_bucket("profiler")])
    stood = (ledger.bounds_ps[:-1] >= since) & ~among(ledger.cause, told)
    cause = np.where(stood, code(CAUSES[stall.bucket]), ledger.cause).astype(np.uint8)
    return replace(host, ledger=replace(ledger, cause=cause))
