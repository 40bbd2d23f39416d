"""The model is saved between steps, and training waits for it.

What it finds
Checkpoints written by the training thread in the middle of the epoch, either by TensorFlow's own
ops or by Keras.

Why it stalls
Saving reads every variable, turns it into bytes and writes a file. Training waits until it is done.

How it is measured
By either of two signs between calls of the train function: ops that write checkpoints (SaveV2), or
a series of variable reads with nothing else in between, which is how Keras saves. The Python after
the reads counts as part of the save. A capture times every save instead.

Example
ModelCheckpoint(save_freq=1) on a model of 8 MB: 28 ms after each of 50 steps.

What to do
Save once per epoch (save_freq="epoch"), or every few thousand batches. A run that cannot afford to
lose minutes needs BackupAndRestore with a save_freq in the thousands, not a checkpoint per batch.

Blind spots
In a trace, reading all weights for another purpose (weight averaging, a custom log) looks the same
as saving them.
"""

from __future__ import annotations

from stall_analyzer.captures.capture_format import Account
from stall_analyzer.detectors.gains import at_pace_of_input, every_epoch, partly, warmer_steps
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.columns import median
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.model.patterns import pattern
from stall_analyzer.signals.signals import Signals

ID = "ST402"
BUCKET = "host"

# One save at the end of an epoch is intended.
SAVES_LEAST = 2
# This much of the epoch must have been seen to assume that all saves were seen.
SEEN_SHARE = 0.9
HOOK = pattern(r"(\w+)\.on_\w+$")  # of a callback's class

SAVE_SELDOM = Change(
    "Save once per epoch, or at least far less often than now.",
    "keras.callbacks.ModelCheckpoint(path, save_freq=1)",
    'keras.callbacks.ModelCheckpoint(path, save_freq="epoch")',
)


def check(signals: Signals) -> Finding | None:
    return _booked(signals) or _traced(signals)


def _booked(signals: Signals) -> Finding | None:
    """From the capture's timing of everything that saves."""
    saves = [cost for cost in signals.booked_costs if cost.account == Account.SAVE]
    lost, count = sum(cost.spent_ps for cost in saves), sum(cost.count for cost in saves)
    severity = severity_of(signals.share(lost))
    if severity is None or count < SAVES_LEAST:
        return None
    gain = partly(lost, 0.8 * (count - 1) / count, 1.0)
    return Finding(
        severity=severity,
        title=f"{_saves(signals)} {count} times in the epoch, {seconds(lost // count)} each time",
        explanation=(
            f"Saving took {signals.with_share(lost)}, as timed by the capture. In that time, the "
            "training thread did nothing else."
        ),
        change=SAVE_SELDOM,
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.95,
        by_clocks=True,
        evidence=signals.evidence_of("host.checkpoint", "saves the model"),
    )


def _saves(signals: Signals) -> str:
    """The callback that does, where the capture met it."""
    saving = (stack for stack in signals.code_stacks if stack.cause == "host.checkpoint")
    functions = (frame.function for stack in saving for frame in stack.frames)
    hook = next((found for name in functions if (found := HOOK.match(name))), None)
    return f"{hook[1]} saves the model" if hook is not None else "The model is saved"


def _traced(signals: Signals) -> Finding | None:
    pauses = signals.between_steps
    if signals.books is not None and not pauses.named_saves:
        return None  # the capture timed all saves, so weights are read for another purpose
    saves = pauses.saves
    lost = saves.host_ps
    severity = severity_of(signals.share(lost))
    if severity is None or len(saves) < SAVES_LEAST:
        return None
    seen = "the epoch" if signals.covered_share >= SEEN_SHARE else "the part that was profiled"
    each = int(median(saves.per_pause_ps))
    sign = (
        "The trace shows the ops that write checkpoints."
        if pauses.named_saves
        else "The thread reads all variables in a row and then stays in Python, which is how Keras "
        "saves a model; reading the weights for another purpose looks the same."
    )
    kept = (len(saves) - 1) / len(saves)
    warmer = warmer_steps(signals, interrupted=len(saves))
    gain = at_pace_of_input(signals, partly(lost, 0.8 * kept, 1.0) + warmer)
    return Finding(
        severity=severity,
        title=f"The model is saved {len(saves)} times in {seen}, {seconds(each)} each time",
        explanation=(
            f"Over {len(signals.training_steps)} steps, the training thread saved the model "
            f"{len(saves)} times, which took {signals.with_share(lost)}. {sign}"
        ),
        change=SAVE_SELDOM,
        lost_ps=lost + warmer.high_ps,
        blames=("host", "compute"),  # steps that are interrupted are slower, too
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.9 if pauses.named_saves else 0.7,
        evidence=signals.evidence_at(saves.start_ps, saves.end_ps, "saves the model"),
    )
