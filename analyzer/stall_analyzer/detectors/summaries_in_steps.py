"""Writing summaries between the steps takes a visible part of the epoch.

What it finds
Scalars, histograms and images that are written after each batch by the training thread.

Why it stalls
A scalar costs half a millisecond. A histogram is worked out by some fifty small ops in Python, for
every variable. With update_freq="batch" or a callback of one's own, each batch pays for it.

How it is measured
Stretches between calls of the train function that lead up to an op that writes a summary.

Example
A histogram of each of 8 weights after each of 20 batches took 2.9 s of 3.5 s.

What to do
Write less often: update_freq=100, or histograms once per epoch (histogram_freq=1 does that).

Blind spots
To capture a first epoch we ask for update_freq="batch" ourselves: some of this is the cost of
measuring, and goes away with it.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.answers import Change, Finding
from stall_analyzer.detectors.base import CONSIDER_SHARE
from stall_analyzer.format import percent, seconds
from stall_analyzer.model import PS_PER_MS
from stall_analyzer.signals import Signals
from stall_analyzer.whatif import at_pace_of_input, every_epoch, partly

ID = "ST403"
NAME = "summaries_in_steps"
BUCKET = "host"

# A few scalars take less; above that it is histograms, images or very many tags.
SCALARS_PS = 10 * PS_PER_MS
# As often as is still useful to watch.
SELDOM = 100


def check(signals: Signals) -> Finding | None:
    summaries = signals.between_steps.summaries
    lost = summaries.host_ps
    if len(summaries) < 2 or signals.share(lost) < CONSIDER_SHARE:
        return None
    each = int(np.median(summaries.per_pause_ps))
    heavy = each > SCALARS_PS
    gain = at_pace_of_input(signals, partly(lost, 0.7, 1.0))
    return Finding(
        id=ID,
        name=NAME,
        bucket=BUCKET,
        # It is what the instruments cost: never the first thing to act on.
        severity="consider" if heavy else "note",
        title=f"Writing summaries takes {seconds(each)} in each of {len(summaries)} pauses",
        explanation=(
            f"The training thread spent {seconds(lost)}, {percent(lost, signals.window_ps)} of the "
            f"first epoch, on writing summaries between the steps. "
            + (
                "That is far more than a few scalars cost: histograms or images are written."
                if heavy
                else "Mostly these are a few scalars per batch, which update_freq makes rarer."
            )
        ),
        change=_change(heavy),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals),
        confidence=0.8,
        evidence=signals.evidence_at(summaries.start_ps, summaries.end_ps, "writes summaries"),
    )


def _change(heavy: bool) -> Change:
    if heavy:
        return Change(
            "Write histograms once per epoch.",
            "def on_train_batch_end(self, batch, logs=None):\n"
            '    tf.summary.histogram("weight", weight)',
            "keras.callbacks.TensorBoard(logdir, histogram_freq=1)  # once per epoch",
        )
    return Change(
        "Write scalars less often, once you have the profile you wanted.",
        'keras.callbacks.TensorBoard(logdir, update_freq="batch")',
        f"keras.callbacks.TensorBoard(logdir, update_freq={SELDOM})",
    )
