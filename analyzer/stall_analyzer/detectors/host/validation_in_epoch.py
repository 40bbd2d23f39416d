"""Validation takes a large part of the epoch.

What it finds
A validation phase inside the first epoch that takes at least 30% of it. The finding is rated "act"
if validation takes longer than training, not counting one-time costs.

Why it stalls
The model learns nothing in that time. Validation exists to watch a metric, and far fewer batches
would show the same value.

How it is measured
The phases of the epoch: from the last training step to the last validation step, including the
tracing of the test function.

Example
90 validation steps after 30 training steps: 1.6 s of the epoch's 3.2 s.

What to do
Use validation_steps=… to validate on part of the data, or validation_freq=5 to validate every fifth
epoch.

Blind spots
An evaluation that a callback runs is found only where its steps differ from the training steps. How
many batches are enough is for you to judge.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.severity import ACT_SHARE
from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.model.findings import Change, Finding, Gain
from stall_analyzer.model.format import counted, percent, seconds
from stall_analyzer.model.kinds import Severity
from stall_analyzer.model.timeline import starts_and_ends
from stall_analyzer.signals.signals import Signals

ID = "ST404"
BUCKET = "compute"

# A fifth of the data held out, without a backward pass, costs less than a tenth of the epoch. Three
# tenths is several times that.
LARGE_SHARE = 0.3
# A quarter of the batches, as advised, takes a quarter of the time. With validation_freq, all of it
# is saved; in the first epoch, even the tracing.
LEAST_SAVED, MOST_SAVED = 0.65, 1.0
# This much of the epoch must have been seen to assume that all steps were seen.
SEEN_SHARE = 0.9


def check(signals: Signals) -> Finding | None:
    phases = [phase for phase in signals.timeline.phases if phase.name == "validation"]
    lost = sum(phase.end_ps - phase.start_ps for phase in phases)
    if signals.share(lost) < LARGE_SHARE:
        return None
    training, steps = _counts(signals)
    fewer = max(steps // 4, 1) if steps else "batches // 4"
    again = lost - signals.one_time_in(starts_and_ends(phases))
    # In the first validation, building the graph may take most of the time.
    sees_what_recurs = signals.covered_share >= SEEN_SHARE or signals.later_epoch_ps is not None
    later = partly(again, LEAST_SAVED if sees_what_recurs else 0.0, MOST_SAVED)
    gain = Gain(later.low_ps, lost)
    return Finding(
        severity=_severity(signals, again, gain),
        title=f"Validation takes {seconds(lost)} ({percent(lost, signals.window_ps)} of the epoch)",
        explanation=(
            f"After {_steps_of('training', training)} came {_steps_of('validation', steps)}, "
            f"which took {seconds(lost)} of the first epoch's {seconds(signals.window_ps)}. The "
            "model learns nothing in that time."
        ),
        change=Change(
            "Validate on fewer batches, or not after every epoch.",
            "model.fit(data, validation_data=held_out)",
            f"model.fit(data, validation_data=held_out, validation_steps={fewer})\n"
            "# or\n"
            "model.fit(data, validation_data=held_out, validation_freq=5)",
        ),
        lost_ps=lost,
        blames=BUCKETS,  # whatever validation spends its time on
        gain=gain,
        later_gain=every_epoch(later, signals),
        once_an_epoch=True,
        confidence=0.85,
        evidence=signals.evidence_at(*starts_and_ends(phases), "validation"),
    )


def _steps_of(phase: str, count: int) -> str:
    return counted(count, f"{phase} step") if count else f"the {phase} steps"


def _severity(signals: Signals, again_ps: int, gain: Gain) -> Severity:
    """`act` where validation takes longer than training and fewer batches are sure to help."""
    every_epoch_ps = signals.window_ps - signals.likely_ledger.one_time_ps()
    longer = again_ps > every_epoch_ps - again_ps
    return "act" if longer and signals.share(gain.low_ps) >= ACT_SHARE else "consider"


def _counts(signals: Signals) -> tuple[int, int]:
    """How many training and validation steps the whole epoch has; 0 where that is not known."""
    training = len(signals.training_steps)
    validation = len(signals.timeline.steps) - training
    if signals.covered_share >= SEEN_SHARE:
        return training, validation
    return signals.timeline.training_steps or 0, 0
