"""Writing summaries between the steps takes a visible part of the epoch.

What it finds
Scalars, histograms and images that the training thread writes: after each batch, or so many at the
end of the epoch that they take a good part of it.

Why it stalls
A scalar costs half a millisecond. For every variable, a histogram takes about fifty small ops,
launched from Python. If a custom callback writes them after each batch, every batch pays that cost.

How it is measured
Groups of eager ops between calls of the train function, if one of them writes a summary, and the
Python between them. The event files show whether any of the summaries are histograms.

Example
A histogram of each of 8 weights after each of 20 batches took 2.9 s of the epoch's 3.5 s.

What to do
Write less often: every hundredth batch, or histograms once per epoch (histogram_freq=1 does that).
In a large model, histograms take a second for every few million weights: once every ten epochs will
do.

Blind spots
The per-batch loss and metrics that Keras's TensorBoard callback logs with update_freq="batch" are
left out: they count as measurement (ST409).
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import at_pace_of_input, every_epoch, partly, warmer_steps
from stall_analyzer.detectors.severity import CONSIDER_SHARE
from stall_analyzer.model.columns import median
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.signals import Signals

ID = "ST403"
BUCKET = "host"

# A few scalars take less; anything above is histograms, images or very many tags.
SCALARS_PS = 10 * PS_PER_MS
# Often enough to watch.
SELDOM = 100


def check(signals: Signals) -> Finding | None:
    summaries = signals.between_steps.summaries
    lost, per_pause = summaries.host_ps, summaries.per_pause_ps
    if signals.share(lost) < CONSIDER_SHARE:
        return None
    # Scalars in each pause are nothing compared with histograms at the end of the epoch.
    long = per_pause[per_pause > SCALARS_PS]
    heavy = bool(long.sum() > lost / 2)
    pauses = long if heavy else per_pause
    each, once = int(median(pauses)), len(pauses) == 1
    histograms = len(signals.events.histograms) if signals.events is not None else 0
    where = "in one pause" if once else f"in each of {len(pauses)} pauses"
    warmer = warmer_steps(signals, interrupted=len(pauses))
    gain = at_pace_of_input(signals, partly(lost, 0.7, 1.0) + warmer)
    return Finding(
        # A few scalars are worth their cost: never the first thing to act on.
        severity="consider" if heavy else "note",
        title=f"Writing summaries takes {seconds(each)} {where}",
        explanation=(
            f"The training thread spent {signals.with_share(lost)} writing summaries between "
            "the steps. " + _of_what(heavy, histograms)
        ),
        change=_change(heavy, histograms, once),
        lost_ps=lost + warmer.high_ps,
        blames=("host", "compute"),  # steps that are interrupted are slower, too
        gain=gain,
        later_gain=every_epoch(gain, signals),
        once_an_epoch=True,
        confidence=0.8,
        evidence=signals.evidence_at(summaries.start_ps, summaries.end_ps, "writes summaries"),
    )


def _of_what(heavy: bool, histograms: int) -> str:
    """What was written, according to the event files; a trace shows only that something was."""
    if not heavy:
        return "This is mostly a few scalars per batch that the program itself writes."
    if histograms:
        tags = "one tag" if histograms == 1 else f"{histograms:,} tags"
        return f"The event files have histograms of {tags}, which cost far more than scalars."
    return (
        "That is more than a few scalars cost. The event files of this run have no histograms: "
        "images, very many tags, or files in another folder may be the reason."
    )


def _change(heavy: bool, histograms: int, once: bool) -> Change:
    if heavy and not histograms:
        return Change(
            "Write summaries less often, or fewer of them.",
            "tf.summary.image(name, images, step=step)  # or many scalars",
            f"if step % {SELDOM} == 0:\n    tf.summary.image(name, images, step=step)",
        )
    if heavy and once:
        return Change(
            "Write histograms every tenth epoch, or for fewer layers.",
            "keras.callbacks.TensorBoard(logdir, histogram_freq=1)",
            "keras.callbacks.TensorBoard(logdir, histogram_freq=10)",
        )
    if heavy:
        return Change(
            "Write histograms once per epoch.",
            "def on_train_batch_end(self, batch, logs=None):\n"
            '    tf.summary.histogram("weight", weight)',
            "keras.callbacks.TensorBoard(logdir, histogram_freq=1)  # once per epoch",
        )
    return Change(
        "Write scalars less often.",
        'tf.summary.scalar("norm", norm, step=step)',
        f'if step % {SELDOM} == 0:\n    tf.summary.scalar("norm", norm, step=step)',
    )
