"""What profiled samples of an epoch say about the rest of it.

The ledger is exact and calls what was not traced unknown. But if profiled windows are spread
throughout the epoch, and it is known when each step ended, the profiled steps show what the others
probably spent their time on. That is an estimate, kept apart from the ledger, and every sentence
that rests on it says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from stall_analyzer.captures.capture_format import WindowEvent, WindowReason
from stall_analyzer.model.causes import CAUSES, bucket_of, code
from stall_analyzer.model.columns import median
from stall_analyzer.model.estimate import Estimate, Range
from stall_analyzer.model.intervals import Layer, Tiling, paint, refine, time_in
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.ledger import HostLedger, Ledger
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace, Phase, Step, Timeline, starts_and_ends
from stall_analyzer.model.units import Float64s, Int64s
from stall_analyzer.signals.estimate.own_cost import untraced_capture_ps

# With this much traced, there is nothing worth estimating.
TRACED_SHARE = 0.9
# Two windows may be a beginning and an end that have nothing in common.
LEAST_WINDOWS = 3
LEAST_STEPS = 10
# If the steps of an epoch were only logged, this much of it must be known to be steps.
KNOWN_SHARE = 0.5
# A longer stretch that nobody looked at may hold anything.
LONGEST_GAP_SHARE = 0.5
# Keras traces its step in the first call, and often once more in the second.
WARM_STEPS = 2
# A step this many times as long as usual is a special case, unless one like it was profiled.
UNUSUAL_FACTOR = 2.0
# Profiled steps are a little slower than others, and samples are few: never surer than this.
LEAST_DOUBT = 0.1
# Windows around slow steps, and around hangs, were not taken at random.
CHOSEN = (WindowReason.SLOW_STEP, WindowReason.HANG)

LEFT_OUT, TRAINING = 0, 1
UNTRACED = code("unknown.not_traced")
CAPTURE = code("profiler.capture")
COUNTS = np.array([bucket_of(cause) != "profiler" for cause in CAUSES])
COUNTS[UNTRACED] = False


@dataclass(frozen=True)
class ProfiledWindow:
    """A profiled part of the epoch, and where its time went."""

    start_ps: int
    end_ps: int
    shares: Float64s  # of the time in its steps, by cause
    steps: tuple[Step, ...]


def sample_of(timeline: Timeline, host: HostLedger) -> Estimate | None:
    """None where all was traced, or too little to say anything about the rest."""
    duration = timeline.window.duration_ps
    steps = [step for step in timeline.steps if step.phase == "training"]
    if not steps or timeline.is_foreign or host.covered_ps >= TRACED_SHARE * duration:
        return None
    known = sum(step.end_ps - step.start_ps for step in steps)
    if timeline.training_steps is None and known < KNOWN_SHARE * duration:
        return None  # nobody timed the steps in between
    tiling = host.ledger.tiling
    windows = list(profiled_windows(timeline, host, steps))
    profiled = [step for window in windows for step in window.steps]
    bounds = [0, *(bound for w in windows for bound in (w.start_ps, w.end_ps)), duration]
    gaps = [end - begin for begin, end in zip(bounds[::2], bounds[1::2], strict=True)]
    if len(windows) < LEAST_WINDOWS or len(profiled) < LEAST_STEPS:
        return None
    if max(gaps) > LONGEST_GAP_SHARE * duration:
        return None
    lengths = np.array([step.end_ps - step.start_ps for step in profiled], dtype=np.int64)
    longest = max(UNUSUAL_FACTOR * float(median(lengths)), float(lengths.max()))
    unusual = [step for step in steps if step.end_ps - step.start_ps > longest]
    training = [phase for phase in timeline.phases if phase.name == "training"]
    added = _untraced_by_cause(training, [*steps[:WARM_STEPS], *unusual], windows, tiling)
    estimated = int(added.sum())
    if estimated == 0:
        return None
    added = _with_capture(added, untraced_capture_ps(timeline, host))
    doubt = max(LEAST_DOUBT, *(_difference(a, b) for a, b in pairwise(windows)))
    likely = _with(host.ledger, added)
    stretches = tuple((w.steps[0].start_ps, w.steps[-1].end_ps) for w in windows)
    seen = sum(end - begin for begin, end in stretches)
    return Estimate(
        ledger=likely,
        ranges=_ranges(likely, host.ledger, round(doubt * estimated)),
        rests_on=(f"{len(profiled):,} steps were profiled, in {len(windows)} windows.",),
        estimated_ps=estimated,
        profiled_steps=len(profiled),
        steps=timeline.training_steps or len(steps),
        stretches_ps=stretches,
        times=1 + estimated / max(seen, 1),
    )


def _ranges(likely: Ledger, exact: Ledger, doubted_ps: int) -> dict[Bucket, Range]:
    """Never less than was traced."""
    whole, traced = int(likely.bounds_ps[-1]), exact.buckets_ps | {"unknown": 0}
    return {
        bucket: Range(max(ps - doubted_ps, traced[bucket]), min(ps + doubted_ps, whole))
        for bucket, ps in likely.buckets_ps.items()
    }


def profiled_windows(
    timeline: Timeline, host: HostLedger, all_steps: Sequence[Step]
) -> Iterator[ProfiledWindow]:
    """The windows that saw usual steps from beginning to end, in order."""
    tiling, steps = host.ledger.tiling, all_steps[WARM_STEPS:]
    parts = [a for a in timeline.traces if a.host == host.host and not is_chosen(timeline, a)]
    for part in sorted(parts, key=lambda part: part.covered_ps):
        begin, end = part.covered_ps
        inside = [step for step in steps if begin <= step.start_ps and step.end_ps <= end]
        inside = inside[1:]  # the first one may include the start of the profiler
        if not inside:
            continue
        first, last = inside[0].start_ps, inside[-1].end_ps
        spent = _by_cause(tiling, np.array([first]), np.array([last]))[:, 0] * COUNTS
        if spent.sum():
            yield ProfiledWindow(begin, end, spent / spent.sum(), tuple(inside))


def is_chosen(timeline: Timeline, part: AlignedTrace) -> bool:
    """Whether a capture took it because something was unusual."""
    captures = timeline.events.captures if timeline.events is not None else ()
    name = part.session.rpartition("/")[2]
    return any(
        record.session == name and record.what == WindowEvent.SAVED and record.reason in CHOSEN
        for capture in captures
        for record in capture.windows
    )


def _by_cause(tiling: Tiling, start: Int64s, end: Int64s) -> Int64s:
    """[cause, interval]"""
    return np.array([time_in(tiling, start, end, np.array([c])) for c in range(len(CAUSES))])


def _untraced_by_cause(
    training: Sequence[Phase],
    left_out: Sequence[Step],
    windows: Sequence[ProfiledWindow],
    tiling: Tiling,
) -> Int64s:
    """Where untraced training time went, without some steps, if it was like the windows around."""
    middles = np.array([(w.start_ps + w.end_ps) // 2 for w in windows], dtype=np.int64)
    layers = [
        Layer(*starts_and_ends(left_out), LEFT_OUT),
        Layer(*starts_and_ends(training), TRAINING),
    ]
    # Cut where another window becomes the nearest.
    bounds, label = refine(paint(0, int(tiling.bounds[-1]), layers), middles)
    start, end = bounds[:-1][label == TRAINING], bounds[1:][label == TRAINING]
    untraced = time_in(tiling, start, end, np.array([UNTRACED]))
    shares = np.array([window.shares for window in windows])
    after = np.searchsorted(middles, start, side="right")
    before = np.maximum(after - 1, 0)
    after = np.minimum(after, len(windows) - 1)
    spent = untraced[:, None] * (shares[before] + shares[after]) / 2
    # Rounded down: what that loses stays unknown.
    return np.asarray(spent.sum(axis=0), dtype=np.int64)


def _with_capture(added: Int64s, capture_ps: int) -> Int64s:
    """What the capture took of that time does not belong to the steps."""
    whole = int(added.sum())
    capture_ps = min(capture_ps, whole)
    added = np.asarray(added * (1 - capture_ps / whole), dtype=np.int64)
    added[CAPTURE] += whole - int(added.sum())
    return added


def _difference(one: ProfiledWindow, other: ProfiledWindow) -> float:
    """The share of its time that one of them spent differently from the other."""
    return float(np.abs(one.shares - other.shares).sum() / 2)


def _with(ledger: Ledger, added: Int64s) -> Ledger:
    """The sums of the ledger, with some of the untraced time given to other causes."""
    once = np.zeros(len(CAUSES), dtype=np.int64)
    always = np.zeros(len(CAUSES), dtype=np.int64)
    lengths = ledger.lengths_ps
    np.add.at(once, ledger.cause[ledger.one_time], lengths[ledger.one_time])
    np.add.at(always, ledger.cause[~ledger.one_time], lengths[~ledger.one_time])
    always += added
    always[UNTRACED] -= added.sum()
    return Ledger(
        bounds_ps=np.concatenate([[0], np.cumsum(np.concatenate([once, always]))]),
        cause=np.tile(np.arange(len(CAUSES), dtype=np.uint8), 2),
        one_time=np.repeat([True, False], len(CAUSES)),
    )
