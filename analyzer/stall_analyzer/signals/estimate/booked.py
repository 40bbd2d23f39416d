"""The profiled part of an epoch with books: what it shows in detail is taken to hold for the rest.

Only the cost of a detail is estimated here: the books know how long all the steps took and what
for, and the profiled steps know which stage or op it was.
"""

from __future__ import annotations

from stall_analyzer.attribute.booked_time import books_of
from stall_analyzer.model.causes import BUCKETS, codes_of_bucket
from stall_analyzer.model.estimate import Estimate, Range
from stall_analyzer.model.intervals import Tiling, time_in
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.ledger import HostLedger
from stall_analyzer.model.timeline import Timeline, starts_and_ends
from stall_analyzer.model.units import Int64s
from stall_analyzer.signals.coverage import covered_spans
from stall_analyzer.signals.estimate.windows import profiled_windows

# With this much of it profiled, the detectors see enough of it as it is.
PROFILED_SHARE = 0.9
LEAST_STEPS = 3


def booked_sample(timeline: Timeline, host: HostLedger) -> Estimate | None:
    """None where no books were kept, or all or nothing was profiled."""
    start, end = covered_spans(timeline.traces).get(host.host, (None, None))
    if start is None or end is None or books_of(timeline.events, host.host) is None:
        return None
    if (end - start).sum() >= PROFILED_SHARE * timeline.window.duration_ps:
        return None
    steps = [step for step in timeline.steps if step.phase == "training"]
    windows = list(profiled_windows(timeline, host, steps))
    stretches = tuple((w.steps[0].start_ps, w.steps[-1].end_ps) for w in windows)
    profiled = sum(len(window.steps) for window in windows)
    if profiled < LEAST_STEPS:
        return None
    training = [phase for phase in timeline.phases if phase.name == "training"]
    whole = _again(host, *starts_and_ends(training))
    seen = [_again(host, *starts_and_ends(window.steps)) for window in windows]
    return Estimate(
        ledger=host.ledger,
        ranges={bucket: Range(ps, ps) for bucket, ps in host.ledger.buckets_ps.items()},
        rests_on=(),
        estimated_ps=0,
        profiled_steps=profiled,
        steps=timeline.training_steps or len(steps),
        stretches_ps=stretches,
        times=sum(whole.values()) / max(sum(sum(each.values()) for each in seen), 1),
        booked_ps={b: (whole[b], sum(each[b] for each in seen)) for b in BUCKETS},
    )


def _again(host: HostLedger, start: Int64s, end: Int64s) -> dict[Bucket, int]:
    """The time in the intervals that comes again in every epoch, by bucket."""
    ledger = host.ledger
    labels = ledger.cause.astype("int64")
    labels[ledger.one_time] = -1
    tiling = Tiling(ledger.bounds_ps, labels)
    return {b: int(time_in(tiling, start, end, codes_of_bucket(b)).sum()) for b in BUCKETS}
