"""One sentence about a first epoch that has just ended, from the books alone.

Quick to import and cheap, because it runs inside the user's training process.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stall_analyzer.attribute.booked_time import with_books
from stall_analyzer.captures.books_reader import read_books
from stall_analyzer.captures.capture_format import BookPhase
from stall_analyzer.captures.capture_records import BooksRecord
from stall_analyzer.model.books import Books
from stall_analyzer.model.causes import ONE_TIME, code
from stall_analyzer.model.format import listed, seconds
from stall_analyzer.model.intervals import NOTHING, Tiling
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.timeline import Window
from stall_analyzer.model.units import PS_PER_NS

# Something that takes less than a tenth of the epoch does not make it slow.
NAMED_SHARE = 0.1
MOST_NAMED = 2
ONCE, LIKELY_AGAIN = "once", "likely in every epoch"
# What a cost is called, and whether it recurs, as far as one epoch can tell. Clocks stand around
# the call of a step: only a profile, in the report, can say what of it was computing.
COSTS = {
    "compile.tracing": ("tracing", ONCE),
    "compile.retracing": ("retracing", ""),
    "compile.instantiate": ("the first run of each graph", ONCE),
    "input.wait": ("waiting for input", "in every epoch unless cached"),
    "input.first_element": ("waiting for the first batch", ""),
    "input.iterator_create": ("creating iterators", LIKELY_AGAIN),
    "host.callback": ("callbacks", LIKELY_AGAIN),
    "host.checkpoint": ("saving the model", LIKELY_AGAIN),
    "host.python": ("Python", LIKELY_AGAIN),
    "host.eager": ("Python and ops outside any tf.function", LIKELY_AGAIN),
    "compute.step": ("running the steps", ""),
    "communication.collective": ("waiting for other workers", LIKELY_AGAIN),
    "profiler.capture": ("the capture itself", ONCE),
    "profiler.logging": ("logging for TensorBoard", LIKELY_AGAIN),
}


def first_epoch(records: Sequence[BooksRecord]) -> str:
    """`The first epoch took 14.2 s: 12.6 s for tracing (once)`; empty without books."""
    in_epochs = [record for record in records if record.phase != BookPhase.START]
    books, _ = read_books(in_epochs or records)  # a loop need not mark epochs
    if books is None or books.end_ns[-1] <= books.begin_ns[0]:
        return ""
    begin_ns, end_ns = int(books.begin_ns[0]), int(books.end_ns[-1])
    costs_ps = _costs_ps(books, begin_ns, end_ns)
    whole_ps = (end_ns - begin_ns) * PS_PER_NS
    named = sorted(
        (cause for cause, ps in costs_ps.items() if ps >= NAMED_SHARE * whole_ps),
        key=lambda cause: -costs_ps[cause],
    )
    what = "The first epoch" if in_epochs else "Training"
    said = listed([_cost(cause, costs_ps[cause]) for cause in named[:MOST_NAMED]])
    return f"{what} took {seconds(whole_ps)}" + (f": {said}" if said else "")


def _costs_ps(books: Books, begin_ns: int, end_ns: int) -> dict[str, int]:
    window = Window(0, (end_ns - begin_ns) * PS_PER_NS, "", "", clock_unix_ns=begin_ns)
    unseen = Tiling(np.array([0, window.duration_ps]), np.array([NOTHING]))
    bounds, labels = with_books(unseen, books, window)
    labels = np.where(labels == NOTHING, code("unknown.not_traced"), labels)
    return Ledger(bounds, labels.astype(np.uint8), ONE_TIME[labels]).causes_ps


def _cost(cause: str, ps: int) -> str:
    name, again = COSTS.get(cause, ("unknown reasons", ""))
    return f"{seconds(ps)} for {name}" + (f" ({again})" if again else "")
