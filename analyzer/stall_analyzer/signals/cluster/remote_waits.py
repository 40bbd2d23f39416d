"""What a coordinator waits for while other processes run its steps."""

from __future__ import annotations

from stall_analyzer.captures.capture_format import Account
from stall_analyzer.signals.booked_costs import BookedCost
from stall_analyzer.signals.signals import Signals

# A worker is late if it is what most of these waits are for. Each comes last now and then.
MOST_OF_IT = 0.7


def late_remote_worker(signals: Signals) -> BookedCost | None:
    """The worker that alone had something to run while the coordinator waited, and for how long."""
    alone = [cost for cost in signals.booked_costs if cost.account == Account.REMOTE]
    whole_ps = sum(cost.spent_ps for cost in alone)
    return next((cost for cost in alone if cost.spent_ps >= MOST_OF_IT * whole_ps), None)


def is_coordinator(signals: Signals) -> bool:
    """Whether its steps run in other processes."""
    return signals.books is not None and bool(signals.books.spent(Account.REMOTE).any())
