"""Where the time of a usual step goes, by the steps that were profiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from stall_analyzer.model.causes import CAUSES, bucket_of
from stall_analyzer.model.format import seconds
from stall_analyzer.model.intervals import Tiling, among, refine
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace, Step
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.estimate.production import Production

# The later half of this many steps in a row shows the usual state: by then, the buffers that were
# filled during the first step are empty.
SETTLED_FROM = 4
# If a step already waits for this share of its time, the buffer is empty: that is the usual state.
WAITED_SHARE = 0.2
# If a batch takes longer than the step, it is not known how much longer: up to this, or up to the
# time that was available to make it. The geometric mean of both is as likely too long as too short.
LONGEST_BATCH_PS = 500 * PS_PER_MS
# A queue filled by Python workers may or may not keep up.
HIDDEN_WAIT_SHARE = 0.5

# How much of the untraced steps may have gone elsewhere; found on half of the programs of
# `make partial`, checked on the other half.
DOUBT_ONE, DOUBT_SOME = 0.35, 0.2
DOUBT_UNCERTAIN, DOUBT_SLOWER, DOUBT_HIDDEN = 0.45, 0.5, 0.8
SOME = 5  # steps
# Steps differ by this much without a reason.
LONGER_SHARE = 0.25


@dataclass(frozen=True)
class UsualStep:
    """One step as most of them are: recurring causes, in ps."""

    causes_ps: Mapping[str, float]
    profiled: int  # how many steps it was taken from
    stretches_ps: tuple[tuple[int, int], ...]  # where they are
    doubt: float
    why: str  # one sentence, empty where the steps speak for themselves

    @property
    def length_ps(self) -> float:
        return sum(self.causes_ps.values())

    def spent_ps(self, bucket: str) -> float:
        return sum(ps for cause, ps in self.causes_ps.items() if bucket_of(cause) == bucket)


def usual_step(
    steps: Sequence[Step], traces: Sequence[AlignedTrace], ledger: Ledger, batches_logged: bool
) -> UsualStep | None:
    """As profiled; None where no step was. The epoch's first step is not a usual one.

    Where batches are not logged, what a profiled batch writes is about the profile itself.
    """
    stretches = [found for trace in traces if (found := _profiled(steps, trace)) is not None]
    if not stretches:
        return None
    counted = sum(count for count, _ in stretches)
    spans = tuple(span for _, span in stretches)
    spent = _recurring(ledger, spans)
    if not batches_logged:
        spent.pop("host.summary", None)
    if not spent:
        return None
    per_step = {cause: ps / counted for cause, ps in spent.items()}
    doubt = DOUBT_SOME if counted >= SOME else DOUBT_ONE
    if per_step.get("compute.device", 0) > sum(per_step.values()) / 2 and not _traces_device(
        traces
    ):
        doubt = DOUBT_SLOWER
    return UsualStep(per_step, counted, spans, doubt, "")


def _traces_device(traces: Sequence[AlignedTrace]) -> bool:
    return any(
        line.last_event > line.first_event
        and aligned.trace.planes[line.plane].name.startswith("/device:")
        for aligned in traces
        for line in aligned.trace.lines
    )


def with_production(
    step: UsualStep, production: Production | None, first_step_ps: int
) -> UsualStep:
    """The same step in the state that most steps are in: after the buffers have run empty."""
    waits = step.causes_ps.get("input.wait", 0.0)
    settled = waits >= WAITED_SHARE * step.length_ps
    if production is None or (settled and production.state != "hidden"):
        return step
    busy = step.length_ps - waits
    if production.state == "seen":
        doubt = step.doubt if production.certain else max(step.doubt, DOUBT_UNCERTAIN)
        return _waiting(step, max(production.batch_ps - busy, waits), doubt, "")
    if step.profiled >= SETTLED_FROM or production.state == "in the step":
        return step
    if production.state == "slower":
        longest = first_step_ps / (production.ready + 1) or LONGEST_BATCH_PS
        share, doubt = _share_of_wait(busy, min(longest, LONGEST_BATCH_PS)), DOUBT_SLOWER
        why = (
            "No batch was finished while steps were profiled, so making a batch takes longer "
            "than a step."
        )
    else:
        share, doubt = HIDDEN_WAIT_SHARE, DOUBT_HIDDEN
        why = "Batches are made by Python workers, which the profile does not show."
    return _waiting(step, busy * share / (1 - share), doubt, why)


def _share_of_wait(busy_ps: float, longest_ps: float) -> float:
    """How much of a step is a wait, for a batch that takes longer than the step itself."""
    return 1 - sqrt(min(busy_ps / longest_ps, 1.0))


def as_long_as_all(step: UsualStep, mean_ps: float, works_ahead: bool) -> UsualStep:
    """The same step with the mean length of all steps, where their number is known."""
    more = mean_ps - step.length_ps
    if more <= LONGER_SHARE * step.length_ps:
        return step
    if not works_ahead:
        why = (
            f"Over the whole epoch, a step took {seconds(round(mean_ps))} on average, longer than "
            "the profiled steps."
        )
        return replace(step, doubt=max(step.doubt, more / mean_ps), why=why)
    why = (
        f"Over the whole epoch, a step took {seconds(round(mean_ps))} on average, because batches "
        "did not arrive any faster."
    )
    waits = step.causes_ps.get("input.wait", 0.0) + more
    return _waiting(step, waits, DOUBT_SOME, why)


def _waiting(step: UsualStep, waits_ps: float, doubt: float, why: str) -> UsualStep:
    causes = {**step.causes_ps, "input.wait": waits_ps}
    return replace(step, causes_ps=causes, doubt=doubt, why=why)


def _profiled(steps: Sequence[Step], trace: AlignedTrace) -> tuple[int, tuple[int, int]] | None:
    """How many steps one trace shows, and from when to when; if there are enough, the settled ones.

    A profile begins and ends with a batch, so what comes after its last step, such as callbacks,
    belongs to that step.
    """
    begin, end = trace.covered_ps
    inside = [step for step in steps if begin <= step.start_ps < step.end_ps <= end]
    if begin == 0:
        inside = inside[1:]  # the epoch's first step
        begin = inside[0].start_ps if inside else end
    if not inside:
        return None
    if len(inside) >= SETTLED_FROM:
        inside = inside[len(inside) // 2 :]
        begin = inside[0].start_ps
    others = [s.start_ps for s in steps if s.start_ps > inside[-1].start_ps and s not in inside]
    return len(inside), (begin, min([end, *others]))


def _recurring(ledger: Ledger, spans: Sequence[tuple[int, int]]) -> dict[str, int]:
    """Picoseconds per recurring cause in the spans; measuring is left out.

    If a step shows mostly no work at all, a device that was not traced was at work.
    """
    inside = np.array([bound for span in spans for bound in span], dtype=np.int64)
    rows = Tiling(ledger.bounds_ps, np.arange(len(ledger.cause), dtype=np.int64))
    bounds, row = refine(rows, inside)
    kept = np.searchsorted(inside, bounds[:-1], side="right") % 2 == 1
    kept &= ~ledger.one_time[row] | among(ledger.cause[row], RETRACING)
    sums = np.zeros(len(CAUSES), dtype=np.int64)
    np.add.at(sums, ledger.cause[row[kept]], np.diff(bounds)[kept])
    spent = {
        cause: int(ps)
        for cause, ps in zip(CAUSES, sums, strict=True)
        if ps and bucket_of(cause) not in ("profiler", "unknown")
    }
    unseen = int(sums[NO_EVIDENCE])
    if unseen > sum(spent.values()):
        spent["compute.device"] = spent.get("compute.device", 0) + unseen
    return spent


# A step that was retraced after the first one will be retraced again: apart from Keras's own second
# trace, only the program's arguments cause that.
NO_EVIDENCE = CAUSES.index("unknown.no_evidence")
RETRACING = np.array([CAUSES.index("compile.retracing")])
