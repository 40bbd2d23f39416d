"""Building and tearing down the pipeline takes a large part of the epoch.

What it finds
Time in which the training thread created an iterator or waited for an old one to end.

Why it stalls
Each epoch of `fit` creates a new iterator: the pipeline's graph is rewritten, its functions are
instantiated, files are opened. Before the old iterator is gone, its threads have to finish whatever
they are doing at that moment. One of these threads tunes the pipeline: it sleeps between checks,
each time twice as long as before. In our runs, slow teardowns lasted as long as that sleep, while
the processors were idle.

How it is measured
The time that the training thread spends in eager ops that create iterators and datasets, and in
slow deletions of their handles.

Example
`for epoch in range(100): model.fit(make_dataset(), epochs=1)` on small data: 0.3 s of every 0.8 s
went to iterators.

What to do
Create one iterator and keep it: `ds.repeat()` with `steps_per_epoch`. Build the dataset once,
outside the loop. Call `fit` once for all epochs, not once for each. If it is the teardown that
takes so long, turn autotuning off. In short loops that kept the cores busy, 34 of 125 teardowns
were slow with autotuning (taking about half of the epoch), and none of 50 without it.

Blind spots
Whether a teardown is slow is a matter of chance, and the next epoch may be spared. A finding about
a slow teardown is therefore never rated "act", and its cost counts as one-time. The very first
iterator is always needed. A trace that ends with the first epoch usually does not show whether
another iterator would be created; in that case, only slow teardowns are reported.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly, removed
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.signals import Signals

ID = "ST014"
BUCKET = "input"

# Creating an iterator takes 10 to 50 ms, which may be a large share of a short epoch.
LEAST_PS = 200 * PS_PER_MS
REPEATS_FROM = 3  # iterators: see _comes_again
# The first iterator has to be created, whatever is changed.
MOST_SAVED = 0.9
MOST_SAVED_LATER = 1.0


_ONE_ITERATOR = Change(
    "Build the dataset once and keep one iterator over all epochs.",
    before="model.fit(ds, epochs=n)",
    after="model.fit(ds.repeat(), epochs=n, steps_per_epoch=steps)",
)
_ONE_FIT = Change(
    "Call fit once for all epochs: each call creates its dataset and its iterators again.",
    before="for epoch in range(n):\n    model.fit(x, y, epochs=1)",
    after="model.fit(x, y, epochs=n)",
)
_NO_AUTOTUNING = Change(
    "Turn off the pipeline's autotuning, so that its teardown does not wait for a sleeping thread.",
    before="for batch in ds:",
    after=(
        "options = tf.data.Options()\n"
        "options.autotune.enabled = False\n"
        "for batch in ds.with_options(options):"
    ),
)


def check(signals: Signals) -> Finding | None:
    made = signals.causes_ps["input.iterator_create"]
    ended = signals.causes_ps["input.iterator_teardown"]
    lost = made + ended
    severity = severity_of(signals.share(lost))
    if severity is None or lost < LEAST_PS or not (_comes_again(signals) or ended >= made):
        return None
    if ended > made:
        return _slow_ending(signals, ended)
    later = partly(lost, 0.3, MOST_SAVED_LATER)
    return Finding(
        severity=severity,
        title=f"Creating and ending iterators took {seconds(lost)}",
        explanation=(
            f"The training thread spent {seconds(made)} creating the pipeline's "
            f"iterators{f' and {seconds(ended)} tearing them down' if ended else ''} "
            f"({percent(lost, signals.window_ps)} of the first epoch). Keras creates new "
            "iterators in every epoch unless fit is told how many steps an epoch has."
        ),
        change=_ONE_FIT if _fits_in_a_loop(signals) else _ONE_ITERATOR,
        lost_ps=lost,
        gain=partly(lost, 0.0, MOST_SAVED),
        later_gain=every_epoch(later, signals),
        once_an_epoch=True,
        confidence=0.7,
        evidence=signals.evidence_of("input.iterator_create", "creates an iterator"),
    )


def _slow_ending(signals: Signals, lost: int) -> Finding:
    """A matter of chance, so there is no need to act on it."""
    return Finding(
        severity="consider",
        title=f"Ending an iterator took {seconds(lost)}",
        explanation=(
            f"The training thread waited {signals.with_share(lost)} for the pipeline's teardown. "
            "A slow teardown is usually waiting for the thread that tunes the pipeline: the longer "
            "the epoch lasts, the longer that thread sleeps, and sometimes it sleeps past the end. "
            "Whether that happens again is a matter of chance."
        ),
        change=_NO_AUTOTUNING,
        lost_ps=lost,
        gain=removed(lost),
        later_gain=every_epoch(partly(lost, 0.0, MOST_SAVED_LATER), signals),
        once_an_epoch=True,
        confidence=0.7,
        evidence=signals.evidence_of("input.iterator_teardown", "ends an iterator"),
    )


def _fits_in_a_loop(signals: Signals) -> bool:
    fits = signals.timeline.fits
    return fits.count > 1 and fits.same_model


def _comes_again(signals: Signals) -> bool:
    """Keras starts with up to two iterators; any more are repeats."""
    made = signals.pipeline.made_ps
    inside = [at for at in made if 0 <= at < signals.window_ps]
    return len(inside) >= REPEATS_FROM or any(at >= signals.window_ps for at in made)
