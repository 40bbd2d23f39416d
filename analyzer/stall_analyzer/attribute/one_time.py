"""Which costs occur only in the first epoch: as later epochs show, or as tf.data works.

A new iterator opens its files and fills its shuffle buffer again. What belongs to the dataset and
not to one of its iterators remains: the rewritten graph of the pipeline with its constants, and the
contents of a cache or a snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stall_analyzer.attribute.filled_stores import filling_spans
from stall_analyzer.captures.capture_format import Account
from stall_analyzer.model.causes import ONE_TIME, code, codes, codes_of_bucket
from stall_analyzer.model.columns import median
from stall_analyzer.model.intervals import (
    Tiling,
    among,
    covered,
    enclosing,
    refine,
    simplify,
    union,
)
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.timeline import AlignedTrace, Timeline
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import rows_called
from stall_analyzer.model.units import Int64s

Spans = tuple[Int64s, Int64s]

MAKE = "EagerLocalExecute: MakeIterator"
# Creates the iterator itself, inside MAKE; before that, the dataset's graph is rewritten, which the
# dataset keeps for all its iterators.
MAKE_ROOT = "MakeIterator::RootDataset"
GET_NEXT = ("IteratorGetNextOp::DoCompute", "EagerLocalExecute: IteratorGetNext")
TRACING = codes("compile.tracing", "compile.retracing")
FIRST_WAITS = ("input.first_element", "input.shuffle_fill")
# A cost recurs if a later epoch shows at least this share of it.
AGAIN_SHARE = 0.5
# In the first epoch, one training and one validation dataset are prepared; a third one, or one in a
# later epoch, means that datasets are created again.
MADE_READY_ONCE = 2
# This many waits for memory may be an accident and a coincidence: nothing says that they recur.
SELDOM = 2
# If more of the first epoch is unknown, its length says little about the known part.
UNTRACED_SHARE = 0.1


def ledger_with_one_time(
    tiling: Tiling, parts: Sequence[AlignedTrace], timeline: Timeline
) -> Ledger:
    """The tiling as a ledger that knows what will not recur."""
    found = (
        (_made_ready_once(parts, timeline), "input.iterator_create"),
        (_filling_stores(parts), "input.contention"),
    )
    cuts = np.concatenate([bound for spans, _ in found for bound in spans])
    whole = simplify(tiling)
    bounds, labels = tiling = refine(whole, cuts)
    once = ONE_TIME[labels]
    for spans, cause in found:
        once |= (labels == code(cause)) & covered(bounds[:-1], *spans)
    if not _first_wait_returns(tiling, parts, timeline):
        once |= among(labels, codes(*FIRST_WAITS))
    wait_for_memory = code("memory.allocator_wait")
    if np.count_nonzero(whole.labels == wait_for_memory) <= SELDOM:
        once |= labels == wait_for_memory
    once &= ~(among(labels, TRACING) & covered(bounds[:-1], *_traced_each_time(parts)))
    if _is_retraced_later(timeline):
        once &= labels != code("compile.retracing")
    return _no_longer_than_later(Ledger(bounds, labels.astype(np.uint8), once), timeline)


def _traced_each_time(parts: Sequence[AlignedTrace]) -> Spans:
    """When callbacks created datasets, in window time: their graphs recur in later epochs."""
    trained = [(p.training.around_side_calls, p.shift_ps) for p in parts if p.training]
    return union(*_joined([(start + shift, end + shift) for (start, end), shift in trained]))


def _is_retraced_later(timeline: Timeline) -> bool:
    """Whether later epochs build new graphs as well, by the books of a capture."""
    captures = timeline.events.captures if timeline.events is not None else ()
    books = next((capture.books for capture in captures if capture.books is not None), None)
    if books is None:
        return False
    _, epoch = np.unique(books.epoch, return_inverse=True)
    first, *later = np.bincount(epoch, books.spent(Account.RETRACE)).tolist()
    return bool(later) and 0 < AGAIN_SHARE * first <= median(later)


def _no_longer_than_later(ledger: Ledger, timeline: Timeline) -> Ledger:
    """Recurring time cannot be longer than a later epoch: of the excess, what came first was
    one-time. Untraced time is left out, since it may have been anything.
    """
    later = timeline.later_epochs_ps
    lengths, unknown = ledger.lengths_ps, among(ledger.cause, codes_of_bucket("unknown"))
    if not later or lengths[unknown].sum() > UNTRACED_SHARE * lengths.sum():
        return ledger
    again = np.where(ledger.one_time | unknown, 0, lengths)
    too_much = int(again.sum() - median(later))
    return replace(ledger, one_time=ledger.one_time | ((np.cumsum(again) <= too_much) & ~unknown))


def _filling_stores(parts: Sequence[AlignedTrace]) -> Spans:
    """When caches and snapshots were filled, in window time."""
    found = [(filling_spans(part.trace), part.shift_ps) for part in parts]
    return union(*_joined([(start + shift, end + shift) for (start, end), shift in found]))


def _joined(spans: Sequence[Spans]) -> Spans:
    nothing = np.empty(0, dtype=np.int64)
    start, end = (np.concatenate([nothing, *(each[side] for each in spans)]) for side in (0, 1))
    return start, end


def _made_ready_once(parts: Sequence[AlignedTrace], timeline: Timeline) -> Spans:
    """When datasets were prepared for their iterators; nothing if that happens in each epoch."""
    start, end = _joined([_making_ready(part) for part in parts])
    if len(start) == 0:
        return start, end
    long = end - start >= AGAIN_SHARE * (end - start).max()
    later = start >= timeline.window.duration_ps
    if (long & later).any() or (long & ~later).sum() > MADE_READY_ONCE:
        return start[:0], end[:0]
    return union(start, end)


def _making_ready(part: AlignedTrace) -> Spans:
    """Per iterator, the time before it is created itself, in window time."""
    events = part.trace.events
    makes, roots = rows_called(part.trace, MAKE), rows_called(part.trace, MAKE_ROOT)
    makes = makes[np.argsort(events.start_ps[makes], kind="stable")]
    around = enclosing(events.start_ps[makes], events.end_ps[makes], events.start_ps[roots])
    inside = around >= 0
    start = events.start_ps[makes[around[inside]]] + part.shift_ps
    return start, events.start_ps[roots[inside]] + part.shift_ps


def _first_wait_returns(tiling: Tiling, parts: Sequence[AlignedTrace], timeline: Timeline) -> bool:
    """Whether the extra wait for the first batch recurs in each epoch."""
    bounds, labels = tiling
    first = among(labels, codes(*FIRST_WAITS))
    if not first.any():
        return True
    lost = int(np.diff(bounds)[first].sum())
    seen = _longest_later_wait_ps(parts, timeline)
    if seen is not None:
        return seen >= AGAIN_SHARE * lost
    return all(_starts_again(part.trace) for part in parts) and _is_renewed(parts, timeline)


def _longest_later_wait_ps(parts: Sequence[AlignedTrace], timeline: Timeline) -> int | None:
    """The longest wait for a batch in a later epoch; None if less than half of one was traced."""
    start, end = _joined([_asked(part) for part in parts])
    later = start >= timeline.window.duration_ps
    if later.sum() < AGAIN_SHARE * max((~later).sum(), 1):
        return None
    return int((end - start)[later].max())


def _asked(part: AlignedTrace) -> Spans:
    """When anything waited for an element of a pipeline, in window time."""
    rows, events = rows_called(part.trace, *GET_NEXT), part.trace.events
    return events.start_ps[rows] + part.shift_ps, events.end_ps[rows] + part.shift_ps


def _starts_again(trace: Trace) -> bool:
    """Whether a second pass over the data begins like the first. It does not if an endless `repeat`
    feeds the buffer, or if tf.data merged both into one stage.
    """
    shuffles = [name for name in trace.names if "::Shuffle" in name]
    return not any(
        "ForeverRepeat" in name.rpartition("::Shuffle")[2] or "::ShuffleAndRepeat" in name
        for name in shuffles
    )


def _is_renewed(parts: Sequence[AlignedTrace], timeline: Timeline) -> bool:
    """Whether the next epoch has its own iterator. Keras asks for one element too many if it does
    not know how many there are; if it does, it creates the next iterator at the end of the epoch.
    With `steps_per_epoch` it does neither. If the trace did not see the end of the epoch, a new
    iterator is assumed, since that is the rule.
    """
    training = [step.end_ps for step in timeline.steps if step.phase == "training"]
    validating = [step.start_ps for step in timeline.steps if step.phase != "training"]
    until = min(validating, default=timeline.window.duration_ps)
    if not training or not any(_saw_end(part, timeline) for part in parts):
        return True
    return any(
        _within(_asked(part)[0], max(training), until)
        or _within(_made(part), max(training), until, at_least=2 if validating else 1)
        for part in parts
    )


def _saw_end(part: AlignedTrace, timeline: Timeline) -> bool:
    return part.covered_ps[1] >= timeline.window.duration_ps


def _made(part: AlignedTrace) -> Int64s:
    return part.trace.events.start_ps[rows_called(part.trace, MAKE)] + part.shift_ps


def _within(at: Int64s, begin: int, end: int, at_least: int = 1) -> bool:
    return int(((at >= begin) & (at <= end)).sum()) >= at_least
