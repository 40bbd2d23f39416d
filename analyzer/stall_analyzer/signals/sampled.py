"""The profiled steps of a sampled epoch, as if they were an epoch of their own.

Detectors ask what share of the epoch something costs. If the epoch was only sampled, the ledger
knows a small part of it, and every cost that comes with each step seems small. So detectors look
only at the profiled stretches, put end to end; what they find is then scaled to all the steps.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stall_analyzer.model.estimate import Estimate
from stall_analyzer.model.findings import Evidence, Finding, Gain
from stall_analyzer.model.format import seconds
from stall_analyzer.model.ledger import HostLedger, Ledger
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace, Phase, Step, Timeline, Window
from stall_analyzer.signals.signals import Signals


@dataclass(frozen=True)
class _Stretch:
    """A profiled stretch, moved to follow the one before it."""

    start_ps: int  # in the window
    end_ps: int
    at_ps: int  # where it begins among the stretches put end to end

    @property
    def earlier_ps(self) -> int:
        return self.start_ps - self.at_ps


def profiled_alone(signals: Signals, estimate: Estimate) -> Signals:
    """Signals of the profiled stretches; in them, only what the profiler saw is right."""
    stretches = _put_end_to_end(estimate)
    window = Window(0, estimate.profiled_ps, "profiled steps", "profiled steps")
    timeline = Timeline(
        window=window,
        traces=tuple(_moved_trace(signals.traces, stretch) for stretch in stretches),
        steps=_moved_steps(signals.training_steps, stretches),
        phases=(Phase("training", 0, window.duration_ps),),
        later_epochs_ps=(),
        events=signals.events,
    )
    host = _cut(signals.host, stretches)
    return Signals(timeline, (host,), host)


def over_the_epoch(finding: Finding, signals: Signals, estimate: Estimate) -> Finding:
    """What the profiled steps show, scaled to all steps of the epoch.

    Never more than the buckets that it blames can hold, nor more than a later epoch takes.
    """

    times = estimate.times_of(finding.blames)

    def scaled(ps: int, most_ps: int) -> int:
        return min(round(ps * times), most_ps)

    blamed = sum(estimate.ranges[bucket].high_ps for bucket in finding.blames)
    most = min(blamed, signals.window_ps)
    lost = scaled(finding.lost_ps, most)
    later = signals.later_epoch_ps or signals.window_ps - estimate.ledger.one_time_ps()
    return replace(
        finding,
        explanation=(
            f"{_of_the_profile(finding.explanation)} This is what the profiled steps show; over "
            f"the whole epoch it comes to about {seconds(lost)} ({estimate.words})."
        ),
        lost_ps=lost,
        gain=Gain(scaled(finding.gain.low_ps, most), scaled(finding.gain.high_ps, most)),
        later_gain=Gain(
            scaled(finding.later_gain.low_ps, later), scaled(finding.later_gain.high_ps, later)
        ),
        confidence=round(finding.confidence, 2),
        evidence=_moved_back(finding.evidence, _put_end_to_end(estimate)),
        estimated=True,
    )


def _of_the_profile(text: str) -> str:
    """Detectors take the profiled stretches for the epoch; their shares are of these stretches."""
    text = text.replace("of the first epoch's", "of the profiled")
    return text.replace("of the first epoch", "of the profiled time")


def _put_end_to_end(estimate: Estimate) -> list[_Stretch]:
    stretches: list[_Stretch] = []
    at = 0
    for begin, end in estimate.stretches_ps:
        stretches.append(_Stretch(begin, end, at))
        at += end - begin
    return stretches


def _moved_trace(traces: Sequence[AlignedTrace], stretch: _Stretch) -> AlignedTrace:
    part = next(a for a in traces if a.covered_ps[0] <= stretch.start_ps < a.covered_ps[1])
    until = stretch.at_ps + stretch.end_ps - stretch.start_ps
    return replace(
        part, shift_ps=part.shift_ps - stretch.earlier_ps, covered_ps=(stretch.at_ps, until)
    )


def _moved_steps(steps: Sequence[Step], stretches: Sequence[_Stretch]) -> tuple[Step, ...]:
    inside = [
        (step, stretch.earlier_ps)
        for stretch in stretches
        for step in steps
        if stretch.start_ps <= step.start_ps and step.end_ps <= stretch.end_ps
    ]
    return tuple(
        replace(step, index=i, start_ps=step.start_ps - earlier, end_ps=step.end_ps - earlier)
        for i, (step, earlier) in enumerate(inside)
    )


def _cut(host: HostLedger, stretches: Sequence[_Stretch]) -> HostLedger:
    """The tiles of the ledger inside the stretches."""
    inside = np.array([bound for s in stretches for bound in (s.start_ps, s.end_ps)])
    cut = host.ledger.cut_at(inside)
    kept = np.searchsorted(inside, cut.bounds_ps[:-1], side="right") % 2 == 1
    lengths = cut.lengths_ps[kept]
    return replace(
        host,
        ledger=Ledger(
            np.concatenate([[0], np.cumsum(lengths)]), cut.cause[kept], cut.one_time[kept]
        ),
        covered_ps=int(lengths.sum()),
    )


def _moved_back(
    evidence: Sequence[Evidence], stretches: Sequence[_Stretch]
) -> tuple[Evidence, ...]:
    begins = [stretch.at_ps for stretch in stretches]
    found = []
    for piece in evidence:
        stretch = stretches[max(bisect_right(begins, piece.start_ps) - 1, 0)]
        start = piece.start_ps + stretch.earlier_ps
        end = min(piece.end_ps + stretch.earlier_ps, stretch.end_ps)
        found.append(replace(piece, start_ps=start, end_ps=max(start, end)))
    return tuple(found)
