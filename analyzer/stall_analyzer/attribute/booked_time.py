"""From the books of a capture to causes: exact for every row, whatever was profiled.

Of a row only sums are known. Its causes stand one after the other, in an order that does not
matter: no sum over rows depends on it.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.captures.capture_format import Account, BookPhase
from stall_analyzer.model.books import Books
from stall_analyzer.model.causes import code
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.intervals import NOTHING, Tiling, simplify
from stall_analyzer.model.timeline import Window
from stall_analyzer.model.units import PS_PER_NS, Bools, Int64s

# In the order in which they mostly happen.
CAUSES_OF = {
    Account.CAPTURE: "profiler.capture",
    Account.LOGGING: "profiler.logging",
    Account.PYTHON: "host.python",
    Account.ITERATOR: "input.iterator_create",
    Account.TRACE: "compile.tracing",
    Account.RETRACE: "compile.retracing",
    Account.GC: "host.python",
    Account.INPUT: "input.wait",
    Account.WAIT: "input.wait",
    Account.STEP: "compute.step",
    Account.COLLECTIVE: "communication.collective",
    Account.SAVE: "host.checkpoint",
    Account.SIDE: "host.callback",
    Account.CALLBACK: "host.callback",
}
FIRST_CALL = "compile.instantiate"
WAITS = (Account.INPUT, Account.WAIT)


def books_of(events: EventLog | None, host: str) -> Books | None:
    """Those that the process kept which wrote this host's traces."""
    captures = events.captures if events is not None else ()
    return next((c.books for c in captures if c.trace_name == host and c.books), None)


def booked_tiling(books: Books, window: Window) -> Tiling:
    """Over the whole window; NOTHING where there is no row."""
    start_ns = window.start_unix_ns
    if start_ns is None:
        return Tiling(np.array([0, window.duration_ps]), np.array([NOTHING]))
    parts = _parts(books)
    lengths = np.stack([ns for _, ns in parts], axis=1) * PS_PER_NS  # a row each
    labels = np.tile([code(cause) for cause, _ in parts], (len(books), 1))
    # Before each row a hole, which is empty where it begins at the end of the last one.
    begins = (books.begin_ns - start_ns) * PS_PER_NS
    bounds = np.concatenate([begins[:, None], begins[:, None] + np.cumsum(lengths, axis=1)], axis=1)
    holes = np.full((len(books), 1), NOTHING)
    tiling = Tiling(bounds.ravel(), np.concatenate([labels, holes], axis=1).ravel()[:-1])
    return _clipped(tiling, window.duration_ps)


def row_bounds(books: Books, window: Window) -> tuple[Int64s, Int64s]:
    """Begins and ends of the rows in window time."""
    start_ns = window.start_unix_ns or 0
    return (books.begin_ns - start_ns) * PS_PER_NS, (books.end_ns - start_ns) * PS_PER_NS


def _clipped(tiling: Tiling, duration_ps: int) -> Tiling:
    bounds = np.clip(tiling.bounds, 0, duration_ps)
    bounds = np.concatenate([[0], bounds, [duration_ps]])
    return simplify(Tiling(bounds, np.concatenate([[NOTHING], tiling.labels, [NOTHING]])))


def _parts(books: Books) -> list[tuple[str, Int64s]]:
    """Causes with their nanoseconds in each row; together they are the row."""
    nothing = np.zeros(len(books), dtype=np.int64)
    eager = (books.steps > 0) & (books.calls == 0)
    parts = []
    for account, cause in CAUSES_OF.items():
        spent = books.spent(account)
        special, ns = {
            "input.wait": ("input.first_element", np.where(_is_first_wait(books), spent, 0)),
            "host.python": ("host.eager", np.where(eager, spent, 0)),
            "compute.step": (FIRST_CALL, np.minimum(spent, _first_calls_took_longer(books))),
        }.get(cause, (cause, nothing))
        parts += [(special, ns), (cause, spent - ns)]
    return parts


def _is_first_wait(books: Books) -> Bools:
    """The first row with a wait in each training and each validation."""
    waits = sum((books.spent(account) for account in WAITS), np.zeros(len(books), np.int64))
    first = np.zeros(len(books), dtype=np.bool_)
    for phase in (BookPhase.TRAIN, BookPhase.VALIDATION):
        rows = np.flatnonzero((waits > 0) & books.in_phase(phase))
        _, at = np.unique(books.epoch[rows], return_index=True)
        first[rows[at]] = True
    return first


def _first_calls_took_longer(books: Books) -> Int64s:
    """Than the calls of other rows: graphs are optimized and compiled when they first run."""
    step, calls = books.spent(Account.STEP), books.calls
    traced = (books.spent(Account.TRACE) + books.spent(Account.RETRACE)) > 0
    longer = np.zeros(len(books), dtype=np.int64)
    for phase in (BookPhase.TRAIN, BookPhase.VALIDATION):
        rows = books.in_phase(phase) & (calls > 0)
        usual = rows & ~traced
        if usual.any():
            each = np.median(step[usual] / calls[usual])
            first = rows & traced
            longer[first] = np.maximum(step[first] - np.round(each * calls[first]), 0)
    return longer
