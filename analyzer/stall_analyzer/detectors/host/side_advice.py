"""Advice about a callback or a loop that uses the model between two steps."""

from __future__ import annotations

from stall_analyzer.decode.vocabulary import PREDICT_STEPS, TEST_STEPS
from stall_analyzer.model.findings import Change
from stall_analyzer.model.units import Int64s
from stall_analyzer.signals.host.between_steps import SidePauses

PREDICT, EVALUATE, DATA_SET = "model.predict", "model.evaluate", "Reading other data"
# Whatever takes this share of the pauses explains them.
MOST = 0.5
# The advice is to call it once in this many batches or epochs.
SELDOM = 50
SELDOM_EPOCHS = 5

EXPLANATIONS = {
    PREDICT: " model.predict creates a dataset, an iterator and a list of callbacks in each call, "
    "however few rows it is given.",
    EVALUATE: " model.evaluate creates a dataset, an iterator and a list of callbacks in each "
    "call, and resets the epoch's metrics.",
    DATA_SET: " That code creates an iterator each time and reads from it while training waits.",
}
LESS_WORK = (
    "Do this work less often or in a separate thread; anything that needs all batches can wait "
    "until the end of the epoch."
)
LESS_VALIDATION = "Evaluate less often, or let fit evaluate after each epoch (validation_data=)."
DIRECT_CALL = Change(
    "Call the model itself: for a single batch, that needs neither a dataset nor an iterator.",
    "y = model.predict(x)",
    "y = model(x, training=False).numpy()\n# or, in a graph\ny = model.predict_on_batch(x)",
)


def side_name(side: SidePauses, taken: Int64s, lost: int) -> str:
    """What is done with the model or with other data, if that is most of what was lost."""
    if taken.sum() < MOST * lost:
        return ""
    function = next(iter(side.functions), "")
    if function in PREDICT_STEPS:
        return PREDICT
    if function in TEST_STEPS:
        return EVALUATE
    return f"{function}()" if function else DATA_SET


def change_for(name: str, *, often: bool, by_fit: bool) -> Change:
    if name in (PREDICT, EVALUATE) and not often:
        return _in_few_epochs(name)
    if name == PREDICT and not by_fit:
        return DIRECT_CALL
    if name == PREDICT:
        return _in_few_batches(
            "Call the model less often. For a single batch, call the model itself: that needs "
            "neither a dataset nor an iterator.",
            "y = self.model.predict(x)",
            "y = self.model(x, training=False).numpy()",
        )
    if name == EVALUATE:
        call = "self.model.evaluate(x, y)"
        return _in_few_batches(LESS_VALIDATION, call, call)
    return _in_few_batches(LESS_WORK, "self.work(logs)", "self.work(logs)")


def _in_few_batches(text: str, before: str, after: str) -> Change:
    hook = "def on_train_batch_end(self, batch, logs=None):"
    return Change(
        text,
        f"{hook}\n    {before}",
        f"{hook}\n    if batch % {SELDOM} == 0:\n        {after}",
    )


def _in_few_epochs(name: str) -> Change:
    call = f"self.{name}(x)" if name == PREDICT else f"self.{name}(x, y)"
    hook = "def on_epoch_end(self, epoch, logs=None):"
    return Change(
        "Do this only every few epochs, on part of the data, or with larger batches (batch_size=).",
        f"{hook}\n    {call}",
        f"{hook}\n    if (epoch + 1) % {SELDOM_EPOCHS} == 0:\n        {call}",
    )
