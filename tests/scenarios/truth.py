"""Turns what a scenario's own clocks saw into seconds per bucket. Never looks at a trace.

The epoch starts out as `host`; every later coat of paint takes the time it covers. So the buckets
sum to the epoch by construction, whatever the clocks recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

BUCKETS = (
    "input", "compile", "memory", "numerics", "compute", "communication", "host", "profiler",
)  # fmt: skip
NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000

# A second call that takes this much longer than usual to reach the graph was traced again.
SECOND_CALL_EXCESS_NS = 5 * NS_PER_MS


@dataclass(frozen=True)
class Interval:
    begin_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns


@dataclass(frozen=True)
class Coat:
    bucket: str
    interval: Interval


@dataclass(frozen=True)
class Call:
    """One call of a training or validation function, as Python saw it."""

    kind: str  # "train" | "test"
    interval: Interval
    traced: bool = False
    raised: bool = False


@dataclass
class Clocks:
    """Everything that the instruments of one program wrote down (unix ns)."""

    epoch: Interval | None = None
    calls: list[Call] = field(default_factory=list)
    fetches: list[Interval] = field(default_factory=list)  # waits for the iterator
    iterator_work: list[Interval] = field(default_factory=list)  # made or taken down
    step_begins: list[int] = field(default_factory=list)  # custom loops only
    step_ends: list[int] = field(default_factory=list)
    logging: list[Interval] = field(default_factory=list)  # hooks of the TensorBoard callback


@dataclass
class Knowledge:
    """What the author of a scenario knows beyond its clocks."""

    xla_calls: set[int] = field(default_factory=set)  # train calls in which XLA compiled
    wasted_steps: set[int] = field(default_factory=set)  # train steps that taught nothing
    coats: list[Coat] = field(default_factory=list)  # painted last, e.g. allocator waits
    moves: list[tuple[str, str, float]] = field(default_factory=list)  # from, to, seconds
    # From this read on each batch was there before it was asked for. What such a read takes is the
    # queue behind ops that need no batch, casts of the weights, say: the step is at work.
    ready_from: int | None = None


@dataclass(frozen=True)
class StepTime:
    call: int
    kind: str
    interval: Interval


def buckets_ns(clocks: Clocks, knowledge: Knowledge) -> dict[str, int]:
    """Nanoseconds of the epoch per bucket."""
    assert clocks.epoch is not None, "the epoch was never timed"
    totals = paint(clocks.epoch, [*_coats(clocks, knowledge), *knowledge.coats])
    for source, target, seconds in knowledge.moves:
        amount = round(seconds * NS_PER_S)
        totals[source] -= amount
        totals[target] += amount
    return totals


def paint(epoch: Interval, coats: Sequence[Coat]) -> dict[str, int]:
    """Nanoseconds per bucket, if each coat covers what is under it."""
    edges = {epoch.begin_ns, epoch.end_ns}
    for coat in coats:
        edges.update((coat.interval.begin_ns, coat.interval.end_ns))
    inside = sorted(edge for edge in edges if epoch.begin_ns <= edge <= epoch.end_ns)
    position = {edge: index for index, edge in enumerate(inside)}
    color = ["host"] * (len(inside) - 1)
    for coat in coats:
        begin = max(coat.interval.begin_ns, epoch.begin_ns)
        end = min(coat.interval.end_ns, epoch.end_ns)
        if begin < end:
            first, last = position[begin], position[end]
            color[first:last] = [coat.bucket] * (last - first)
    totals = dict.fromkeys(BUCKETS, 0)
    for index, bucket in enumerate(color):
        totals[bucket] += inside[index + 1] - inside[index]
    return totals


def steps_of(clocks: Clocks) -> list[StepTime]:
    """When each step had its batch and when its last op was done."""
    steps: list[StepTime] = []
    for index, call in enumerate(clocks.calls):
        ready = [f.end_ns for f in _inside(clocks.fetches, call.interval)]
        ready = ready or [t for t in clocks.step_begins if _holds(call.interval, t)]
        ends = [t for t in clocks.step_ends if _holds(call.interval, t)]
        before = call.interval.begin_ns
        # One execution of several steps fetches the next batch while it computes on the last one.
        for begin, end in zip(ready, ends, strict=False):
            steps.append(StepTime(index, call.kind, Interval(max(begin, before), end)))
            before = end
    return steps


def _coats(clocks: Clocks, knowledge: Knowledge) -> Iterable[Coat]:
    steps = steps_of(clocks)
    for hook in clocks.logging:
        yield Coat("profiler", hook)
    for work in clocks.iterator_work:
        yield Coat("input", work)
    for kind in ("train", "test"):
        yield from _making_code(clocks, kind)
    ready_from = len(clocks.fetches) if knowledge.ready_from is None else knowledge.ready_from
    for index, fetch in enumerate(clocks.fetches):
        yield Coat("input" if index < ready_from else "compute", fetch)
    for call in clocks.calls:
        if call.raised:  # the end of the data is found out by asking for more of it
            yield Coat("input", call.interval)
    train_steps = [step for step in steps if step.kind == "train"]
    ordinary = [step for step in train_steps if step.call not in knowledge.xla_calls]
    usual = _median([step.interval.length_ns for step in ordinary])
    wasted = {id(step) for i, step in enumerate(train_steps) if i in knowledge.wasted_steps}
    for step in steps:
        yield Coat("numerics" if id(step) in wasted else "compute", step.interval)
        if step.call in knowledge.xla_calls:
            begin, end = step.interval.begin_ns, step.interval.end_ns
            yield Coat("compile", Interval(begin, max(begin, end - usual)))


def _making_code(clocks: Clocks, kind: str) -> Iterable[Coat]:
    """Calls that reached the graph late because it was traced, optimized and instantiated."""
    calls = [call for call in clocks.calls if call.kind == kind and not call.raised]
    heads = [_head(clocks, call) for call in calls]
    steady = [h.length_ns for h, c in zip(heads[2:], calls[2:], strict=True) if not c.traced]
    usual = _median(steady)
    for index, (call, head) in enumerate(zip(calls, heads, strict=True)):
        late = head.length_ns - usual
        if call.traced or index == 0 or (index == 1 and late > SECOND_CALL_EXCESS_NS):
            yield Coat("compile", Interval(head.begin_ns, max(head.begin_ns, head.end_ns - usual)))


def _head(clocks: Clocks, call: Call) -> Interval:
    """From the Python call to the first thing that happened in the graph."""
    begins = [f.begin_ns for f in clocks.fetches if _holds(call.interval, f.begin_ns)]
    begins += [t for t in clocks.step_begins if _holds(call.interval, t)]
    return Interval(call.interval.begin_ns, min(begins, default=call.interval.begin_ns))


def _inside(intervals: Iterable[Interval], outer: Interval) -> list[Interval]:
    return [i for i in intervals if _holds(outer, i.begin_ns)]


def _holds(outer: Interval, moment_ns: int) -> bool:
    return outer.begin_ns <= moment_ns <= outer.end_ns


def _median(values: Sequence[int]) -> int:
    return round(median(values)) if values else 0
