"""Does the loss agree that nothing is learned? What looks odd by itself may be intended."""

from __future__ import annotations

from stall_analyzer.signals.signals import Signals

# Of the cost of a constant answer: a loss below it has learned more than the label frequencies.
LEARNED = 0.95
# Before either of these, a healthy model may not have gotten there.
ENOUGH_EPOCHS = 3
ENOUGH_STEPS = 100
# A loss that moves by no more than this share of itself does not move.
FLAT = 0.02


def learns_nothing(signals: Signals) -> bool:
    """False where the log does not show it."""
    learning, batches = signals.learning, signals.batches
    if learning.not_finite is not None and learning.not_finite.to_the_end:
        return True
    if is_first_epoch_alone(signals):
        return False
    if signals.learned_nothing:
        return True
    last = learning.last_loss
    if last is None:
        return False
    if batches is not None and batches.baseline:
        is_early = len(learning.epoch_losses) < ENOUGH_EPOCHS
        if is_early and (learning.step_count or 0) < ENOUGH_STEPS:
            return False
        return last > LEARNED * batches.baseline - 2 * batches.baseline_error
    return learning.is_flat(FLAT)


def is_first_epoch_alone(signals: Signals) -> bool:
    """Runs of one epoch are usually made to measure time, with whatever data was at hand."""
    return len(signals.learning.epoch_losses) == 1
