"""What a coordinator waits for while other processes run its steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stall_analyzer.captures.capture_format import Account
from stall_analyzer.captures.stack_frames import frame_of
from stall_analyzer.model.code_lines import CodeLine
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.records import dataclass
from stall_analyzer.signals.booked_costs import BookedCost
from stall_analyzer.signals.signals import Signals

# A worker is late if it is what most of these waits are for. Each comes last now and then.
MOST_OF_WAITS = 0.7
MOST_OF_IT = 0.5  # of what its steps take longer: that is the reason


@dataclass(frozen=True)
class LateWorker:
    """The worker that alone had something to run while the coordinator waited."""

    name: str
    cost_ps: int  # how long the coordinator waited for it
    waits: int
    bucket: Bucket | None = None  # of what it takes longer for; None where that was not recorded
    # On average, in each step: how much longer than on the others it took, and waited for its
    # batch.
    longer_ps: int = 0
    longer_input_ps: int = 0
    lines: tuple[CodeLine, ...] = ()  # where it waited for the batch, if that is the reason


def late_remote_worker(signals: Signals) -> LateWorker | None:
    alone = _of(Account.REMOTE, signals)
    whole_ps = sum(cost.spent_ps for cost in alone)
    late = next((cost for cost in alone if cost.spent_ps >= MOST_OF_WAITS * whole_ps), None)
    return None if late is None else _with_reason(late, signals)


def is_coordinator(signals: Signals) -> bool:
    """Whether its steps run in other processes."""
    return signals.books is not None and bool(signals.books.spent(Account.REMOTE).any())


def _of(account: str, signals: Signals) -> list[BookedCost]:
    """A name that stands for several workers says nothing about any of them."""
    costs = [cost for cost in signals.booked_costs if cost.account == account]
    return [cost for cost in costs if cost.name.startswith("worker ")]


def _with_reason(late: BookedCost, signals: Signals) -> LateWorker:
    unknown = LateWorker(late.name, late.spent_ps, late.count)
    steps, waits = _of(Account.REMOTE_STEP, signals), _of(Account.REMOTE_WAIT, signals)
    ran = {cost.name: cost.count for cost in steps}
    others = sum(ran.values()) - ran.get(late.name, 0)
    if not (ran.get(late.name) and others):
        return unknown

    def longer(costs: Sequence[BookedCost]) -> int:
        """In each of its steps than in each of theirs."""
        own = sum(cost.spent_ps for cost in costs if cost.name == late.name)
        theirs = sum(cost.spent_ps for cost in costs if cost.name in ran) - own
        return own // ran[late.name] - theirs // others

    longer_ps, longer_input_ps = longer(steps), max(longer(waits), 0)
    if longer_ps <= 0:
        return unknown
    by_input = min(longer_input_ps / longer_ps, 1.0)
    lines: Counter[str] = Counter()
    if by_input >= MOST_OF_IT:
        for place in {cost.where for cost in waits}:
            in_place = longer([cost for cost in waits if cost.where == place])
            lines[place] = round(late.spent_ps * min(in_place / longer_ps, 1.0))
    return LateWorker(
        *(late.name, late.spent_ps, late.count),
        "input" if by_input >= MOST_OF_IT else "compute",
        longer_ps,
        min(longer_input_ps, longer_ps),
        tuple(_lines(lines, signals)),
    )


def _lines(places: Counter[str], signals: Signals) -> list[CodeLine]:
    """Costliest first."""
    stacks = signals.capture.stacks if signals.capture is not None else None
    source = stacks.source if stacks is not None else {}
    found = []
    for place, ps in places.most_common():
        frame = frame_of(place)
        if frame is not None and ps > 0:
            text = source.get(f"{frame.path}:{frame.line}", "")
            at = frame.path, frame.line, frame.function
            found.append(CodeLine("input", "input.wait", *at, ps, text))
    return found
