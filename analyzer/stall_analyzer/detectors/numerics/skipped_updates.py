"""Loss scaling skipped updates because gradients overflowed.

What it finds
Training steps that ran in full and then changed nothing: with loss scaling (mixed precision), a
gradient that is not finite makes the optimizer skip the update and halve its scale.

Why it stalls
A skipped step costs as much time as any other. A few at the beginning are normal while the scale
finds its level; many of them, or some throughout the epoch, mean that the scale began far too high
or that the gradients themselves overflow.

How it is measured
In a trace, the steps of the first epoch that check their gradients with IsFinite but assign no
variable are counted; the ledger shows their time under the cause numerics.skipped_update. A capture
counts the skipped updates themselves, whatever the trace shows.

Example
45 of the 60 steps of the first epoch skipped their update: LossScaleOptimizer was given an initial
scale of 2**60, but the largest float16 number is 65,504.

What to do
Leave initial_scale at its default of 2**15. If updates are still skipped, lower the learning rate,
clip gradients or use mixed_bfloat16, which needs no scaling.

Blind spots
Steps compiled by XLA show no ops, so their skipped updates are not seen without a capture.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.detectors.severity import ACT_SHARE, CONSIDER_SHARE
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.model.kinds import Severity
from stall_analyzer.model.records import dataclass
from stall_analyzer.signals.signals import Signals

ID = "ST308"
BUCKET = "numerics"

# Finding the scale takes a handful of steps; fewer than this are not worth reporting.
LEAST_STEPS = 3
# A run that skips most of its steps, the last ones included, is not learning.
MOST = 0.5


@dataclass(frozen=True)
class _Skips:
    """Updates that loss scaling skipped."""

    count: int
    steps: int
    lately: float  # share of the last quarter of the steps
    counted: bool  # by a capture, else seen in the trace


def check(signals: Signals) -> Finding | None:
    skips = _captured(signals) or _traced(signals)
    if skips is None or skips.count < LEAST_STEPS:
        return None
    lost = signals.causes_ps["numerics.skipped_update"]
    spent = f"; {seconds(lost)} was wasted" if lost else ""
    return Finding(
        severity=_severity(skips.count / skips.steps, skips.lately),
        title=f"{skips.count} of {skips.steps} updates were skipped because gradients overflowed",
        explanation=(
            f"Loss scaling found gradients that were not finite in {_share_of(skips)} "
            f"steps of the first epoch{spent}. "
            + (
                f"In the last quarter of the epoch, {percent(skips.lately, 1)} of the updates "
                f"were still skipped."
                if skips.lately
                else "None of them was in the last quarter of the epoch: the scale has settled."
            )
        ),
        change=Change(
            "Leave the initial loss scale at its default; if updates are still skipped, lower the "
            "learning rate, clip the gradients or use mixed_bfloat16.",
            before="keras.optimizers.LossScaleOptimizer(inner, initial_scale=2.0**60)",
            after="keras.optimizers.LossScaleOptimizer(inner)  # 2**15",
        ),
        lost_ps=lost,
        confidence=0.97 if skips.counted else 0.9,
        evidence=signals.evidence_of("numerics.skipped_update", "update skipped"),
    )


def _traced(signals: Signals) -> _Skips | None:
    skipped = signals.per_step_ps("numerics.skipped_update") > 0
    steps = len(skipped)
    if not signals.causes_ps["numerics.skipped_update"] or not steps:
        return None
    lately = float(skipped[-max(steps // 4, 1) :].mean())
    return _Skips(int(skipped.sum()), steps, lately, counted=False)


def _captured(signals: Signals) -> _Skips | None:
    """The count covers all steps; it is recorded in some of them."""
    series = signals.captured_in_window(Tag.SKIPPED_UPDATES)
    if series is None or len(series) < 2:
        return None
    steps = int(series.step[-1]) + 1
    quarter = int(np.searchsorted(series.step, steps * 3 // 4))
    before = min(quarter, len(series) - 2)
    since = int(series.step[-1] - series.step[before])
    lately = float(series.value[-1] - series.value[before]) / max(since, 1)
    return _Skips(int(series.value[-1]), steps, lately, counted=True)


def _share_of(skips: _Skips) -> str:
    if skips.count == skips.steps:
        return f"all {skips.steps}"
    return f"{skips.count} of the {skips.steps}"


def _severity(share: float, lately: float) -> Severity:
    if min(share, lately) >= MOST:
        return "act"
    return "consider" if share >= ACT_SHARE or lately >= CONSIDER_SHARE else "note"
