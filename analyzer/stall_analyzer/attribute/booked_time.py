"""From the books of a capture to causes: exact for every row, whatever was profiled.

Only the sums of a row are known. Its causes follow one another in an order that does not matter: no
sum over rows depends on it. The profiled rows show for the others what an account was spent on in
detail: for example, how much of a step is dispatch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from stall_analyzer.captures.capture_format import Account, BookPhase
from stall_analyzer.model.books import Books
from stall_analyzer.model.causes import CAUSES, bucket_of, code, codes, codes_of_bucket
from stall_analyzer.model.columns import between, median
from stall_analyzer.model.event_log import Capture, EventLog
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.model.intervals import (
    NOTHING,
    Layer,
    Tiling,
    among,
    overlay,
    paint,
    simplify,
    time_in,
)
from stall_analyzer.model.timeline import Window
from stall_analyzer.model.units import PS_PER_MS, PS_PER_NS, Bools, Int64s

# In the order in which they usually happen.
CAUSES_OF = {
    Account.CAPTURE: "profiler.capture",
    Account.LOGGING: "profiler.logging",
    Account.PYTHON: "host.python",
    Account.ITERATOR: "input.iterator_create",
    Account.TEARDOWN: "input.iterator_teardown",
    Account.TRACE: "compile.tracing",
    Account.RETRACE: "compile.retracing",
    Account.GC: "host.python",
    Account.INPUT: "input.wait",
    Account.WAIT: "input.wait",
    Account.STEP: "compute.step",
    Account.REMOTE: "unknown.no_evidence",  # what other processes do was not recorded
    Account.SAVE: "host.checkpoint",
    Account.SIDE: "host.callback",
    Account.CALLBACK: "host.callback",
    # At the end, where a meeting of workers ends (see booked_workers).
    Account.COLLECTIVE: "communication.collective",
}
FIRST_CALL = "compile.instantiate"
EAGER = "host.eager"
COMPILING = "compile.xla"
WAITS = (Account.INPUT, Account.WAIT)
BESIDE = (Account.CALLBACK, Account.SIDE, Account.SAVE)
# If the profile missed more of a row than this, only the books count.
MISSED_SHARE = 0.05
# The same if the profile differs by this much of it. (Both have small errors: when a wait begins,
# and the tracer's own time.)
OTHERWISE_SHARE = 0.2
OTHERWISE_LEAST_PS = 5 * PS_PER_MS
MOSTLY = 0.5
UNSEEN = -2  # NOTHING that must stay so while other NOTHING is filled
# What a profile can find inside an account, besides the cause that it has without one, and inside
# steps without a compiled function. Contention with input can be in all of them.
IN_KERNELS = tuple(c for c in CAUSES if bucket_of(c) in ("compute", "memory", "numerics"))
IN_PYTHON = ("host.python", EAGER, "host.summary", "input.contention")
DETAILS = {
    Account.STEP: (*IN_KERNELS, COMPILING, "host.dispatch", "input.contention", "host.py_func"),
    Account.PYTHON: IN_PYTHON,
    EAGER: (*IN_KERNELS, *IN_PYTHON),
}
TRACING = ((Account.TRACE, Account.RETRACE), ("compile.tracing", "compile.retracing"))
# What the clocks and a profile can each tell independently.
COMPARED = (
    (
        (*WAITS, Account.ITERATOR, Account.TEARDOWN),
        tuple(c for c in CAUSES if bucket_of(c) == "input" and c != "input.contention"),
    ),
    TRACING,
)
Shares = Mapping[str, Mapping[str, float]]  # causes in an account, or in eager steps


def books_of(events: EventLog | None, host: str) -> Books | None:
    """The books of the process that wrote this host's traces."""
    capture = capture_with_books(events, host)
    return None if capture is None else capture.books


def capture_with_books(events: EventLog | None, host: str) -> Capture | None:
    captures = events.captures if events is not None else ()
    return next((c for c in captures if c.trace_name == host and c.books), None)


def without_overlap(traced: Tiling, books: Books, window: Window) -> Books:
    """Progress beats waiting, but the clock around `get_next` cannot see that other ops of the step
    compute meanwhile, because they need no batch. A profile shows it, and how much it is."""
    if window.start_unix_ns is None:
        return books
    start, end = _row_bounds(books, window.start_unix_ns)
    rows = _seen(traced, start, end, window) & _is_usual(books)
    waited, wait_causes = books.spent(Account.WAIT), COMPARED[0][1]
    booked = PS_PER_NS * waited[rows]
    seen = np.minimum(time_in(traced, start[rows], end[rows], codes(*wait_causes)), booked)
    overlap, whole = int((booked - seen).sum()), int((end - start)[rows].sum())
    if overlap <= max(OTHERWISE_SHARE * whole, OTHERWISE_LEAST_PS):
        return books
    computed = np.floor(overlap / int(booked.sum()) * waited).astype(np.int64)
    step = books.spent(Account.STEP) + computed
    spent_ns = {**books.spent_ns, Account.WAIT: waited - computed, Account.STEP: step}
    return replace(books, spent_ns=spent_ns)


def with_books(traced: Tiling, books: Books, window: Window) -> Tiling:
    """The tiling of what was profiled, completed by the books."""
    if window.start_unix_ns is None:
        return traced
    start, end = _row_bounds(books, window.start_unix_ns)
    traced = _with_callbacks(traced, books, start, end)
    traced = _with_timed_tracing(traced, books, start, end)
    missing = time_in(traced, start, end, np.append(codes_of_bucket("unknown"), NOTHING))
    missed = missing > MISSED_SHARE * (end - start)
    missed |= _read_otherwise(traced, books, start, end)
    shares = _shares(books, traced, missed, window.start_unix_ns)
    booked = _clipped(_tiled(books, shares, start), window.duration_ps)
    holes = paint(0, window.duration_ps, [Layer(start[missed], end[missed], 0)], default=1)
    seen = overlay(traced, Tiling(traced.bounds[[0, -1]], np.array([NOTHING])))
    labels = np.where(among(seen.labels, codes_of_bucket("unknown")), NOTHING, seen.labels)
    seen = _masked(Tiling(seen.bounds, labels), holes)
    return overlay(overlay(seen, booked), traced)


def _with_callbacks(traced: Tiling, books: Books, start: Int64s, end: Int64s) -> Tiling:
    """A trace sees only Python between steps. If clocks show that callbacks took most of it, it
    belongs to them."""
    python = codes("host.python")
    beside = PS_PER_NS * (books.spent(Account.CALLBACK) + books.spent(Account.SIDE))
    theirs = beside > MOSTLY * time_in(traced, start, end, python)
    return _renamed(traced, python, Layer(start[theirs], end[theirs], code("host.callback")))


def _with_timed_tracing(traced: Tiling, books: Books, start: Int64s, end: Int64s) -> Tiling:
    """In a trace, building a graph includes making a function of it afterward. What exceeds the
    time by the clocks is that."""
    accounts, causes = TRACING
    building = codes(*causes)
    passed = np.append(0, np.cumsum(between(traced.bounds) * among(traced.labels, building)))
    booked = PS_PER_NS * (books.spent(accounts[0]) + books.spent(accounts[1]))
    longer = np.maximum(time_in(traced, start, end, building) - booked, 0)
    too_long = (longer > 0) & (booked > 0)
    # The moment from which on that much was spent on building.
    built = np.interp(end, traced.bounds, passed) - longer
    since = np.round(np.interp(built, passed, traced.bounds)).astype(np.int64)
    return _renamed(traced, building, Layer(since[too_long], end[too_long], code(FIRST_CALL)))


def _renamed(tiling: Tiling, wanted: Int64s, layer: Layer) -> Tiling:
    """What has one of the wanted codes gets that of the layer, where it is."""
    bounds, labels = tiling
    painted = paint(int(bounds[0]), int(bounds[-1]), [layer], default=NOTHING)
    kept = np.where(labels == NOTHING, UNSEEN, labels)
    others = Tiling(bounds, np.where(among(labels, wanted), NOTHING, kept))
    found = overlay(overlay(others, painted), tiling)
    return Tiling(found.bounds, np.where(found.labels == UNSEEN, NOTHING, found.labels))


def _read_otherwise(traced: Tiling, books: Books, start: Int64s, end: Int64s) -> Bools:
    """Rows in which a trace calls a lot of time input or tracing that was not, and rows of
    callbacks and saves: clocks around the calls know who called."""
    differ = np.zeros(len(books), dtype=np.int64)
    for accounts, causes in COMPARED:
        booked = PS_PER_NS * sum((books.spent(a) for a in accounts), np.zeros(len(books), np.int64))
        differ = np.maximum(differ, np.abs(time_in(traced, start, end, codes(*causes)) - booked))
    beside = PS_PER_NS * sum((books.spent(a) for a in BESIDE), np.zeros(len(books), np.int64))
    otherwise = (differ > OTHERWISE_SHARE * (end - start)) & (differ > OTHERWISE_LEAST_PS)
    return np.asarray(otherwise | (beside > MOSTLY * (end - start)))


def agreement(traced: Tiling, books: Books, window: Window) -> tuple[str, bool]:
    """One sentence on how far the clocks and the profile differ in the rows that both saw, and
    whether that is more than their small errors can explain."""
    if window.start_unix_ns is None:
        return "", False
    start, end = _row_bounds(books, window.start_unix_ns)
    both = _seen(traced, start, end, window)
    whole = int((end - start)[both].sum())
    if not whole:
        return "The capture's clocks timed the epoch; none of it was profiled as well.", False
    differ = sum(
        abs(
            int(time_in(traced, start[both], end[both], codes(*causes)).sum())
            - PS_PER_NS * sum(int(books.spent(account)[both].sum()) for account in accounts)
        )
        for accounts, causes in COMPARED
    )
    return (
        f"The capture's clocks timed the epoch. In the part that was also profiled "
        f"({seconds(whole)}), the clocks and the profile differ on input and tracing by "
        f"{percent(differ, whole)} of that time.",
        differ > max(OTHERWISE_SHARE * whole, OTHERWISE_LEAST_PS),
    )


def _seen(traced: Tiling, start: Int64s, end: Int64s, window: Window) -> Bools:
    """Rows that were profiled from begin to end."""
    unseen = time_in(traced, start, end, np.append(codes_of_bucket("unknown"), NOTHING))
    return np.asarray((unseen == 0) & (start >= 0) & (end <= window.duration_ps))


def _masked(tiling: Tiling, kept: Tiling) -> Tiling:
    """NOTHING wherever the other tiling has a 0."""
    marked = overlay(Tiling(kept.bounds, np.where(kept.labels == 0, UNSEEN, NOTHING)), tiling)
    return Tiling(marked.bounds, np.where(marked.labels == UNSEEN, NOTHING, marked.labels))


def _row_bounds(books: Books, start_ns: int) -> tuple[Int64s, Int64s]:
    """Begins and ends of the rows in window time."""
    return (books.begin_ns - start_ns) * PS_PER_NS, (books.end_ns - start_ns) * PS_PER_NS


def _tiled(books: Books, shares: Shares, begins: Int64s) -> Tiling:
    """One tile per row; NOTHING between two rows that do not touch."""
    parts = _parts(books, shares)
    lengths = np.stack([ns for _, ns in parts], axis=1) * PS_PER_NS
    labels = np.tile([code(cause) for cause, _ in parts], (len(books), 1))
    bounds = np.concatenate([begins[:, None], begins[:, None] + np.cumsum(lengths, axis=1)], axis=1)
    holes = np.full((len(books), 1), NOTHING)
    return Tiling(bounds.ravel(), np.concatenate([labels, holes], axis=1).ravel()[:-1])


def _clipped(tiling: Tiling, duration_ps: int) -> Tiling:
    bounds = np.clip(tiling.bounds, 0, duration_ps)
    bounds = np.concatenate([[0], bounds, [duration_ps]])
    return simplify(Tiling(bounds, np.concatenate([[NOTHING], tiling.labels, [NOTHING]])))


def _parts(books: Books, shares: Shares) -> list[tuple[str, Int64s]]:
    """Causes with their nanoseconds in each row; they add up to the row."""
    nothing = np.zeros(len(books), dtype=np.int64)
    parts: list[tuple[str, Int64s]] = []
    for account, cause in CAUSES_OF.items():
        spent = books.spent(account)
        special, ns = {
            "input.wait": ("input.first_element", np.where(_is_first_wait(books), spent, 0)),
            "host.python": (EAGER, np.where(books.is_eager, spent, 0)),
            "compute.step": (FIRST_CALL, np.minimum(spent, _first_calls_took_longer(books))),
        }.get(cause, (cause, nothing))
        parts += _divided(special, ns, shares.get(special, {}))
        parts += _divided(cause, spent - ns, shares.get(account, {}))
    return parts


def _divided(cause: str, ns: Int64s, shares: Mapping[str, float]) -> list[tuple[str, Int64s]]:
    """Rounding errors stay with the cause itself."""
    others = [
        (c, np.floor(share * ns).astype(np.int64)) for c, share in shares.items() if c != cause
    ]
    return [*others, (cause, ns - sum((part for _, part in others), np.zeros_like(ns)))]


def _shares(books: Books, traced: Tiling, missed: Bools, start_ns: int) -> Shares:
    """From the profiled rows in which no graph was built."""
    start, end = _row_bounds(books, start_ns)
    usual = ~missed & _is_usual(books)
    found: dict[str, dict[str, float]] = {}
    for account, causes in DETAILS.items():
        rows = usual & (books.is_eager == (account == EAGER))
        in_rows = {c: time_in(traced, start[rows], end[rows], codes(c)) for c in causes}
        # If XLA compiles now and then, that says nothing about other steps; if it does in most, it
        # does.
        spent = {
            cause: int(ps.sum())
            for cause, ps in in_rows.items()
            if cause != COMPILING or (ps > 0).sum() > MOSTLY * len(ps)
        }
        whole = sum(spent.values())
        if whole:
            found[account] = {cause: ps / whole for cause, ps in spent.items() if ps}
    return found


def _is_usual(books: Books) -> Bools:
    """Rows of training steps in which no graph was built."""
    return np.asarray(
        ~_traced_in(books) & books.in_phase(BookPhase.TRAIN) & (books.steps > 0), dtype=np.bool_
    )


def _traced_in(books: Books) -> Bools:
    """Rows in which graphs were built."""
    return np.asarray(books.spent(Account.TRACE) + books.spent(Account.RETRACE) > 0)


def _is_first_wait(books: Books) -> Bools:
    """The first row with a wait in each training phase and each validation."""
    waits = sum((books.spent(account) for account in WAITS), np.zeros(len(books), np.int64))
    first = np.zeros(len(books), dtype=np.bool_)
    for phase in (BookPhase.TRAIN, BookPhase.VALIDATION):
        rows = np.flatnonzero((waits > 0) & books.in_phase(phase))
        _, at = np.unique(books.epoch[rows], return_index=True)
        first[rows[at]] = True
    return first


def _first_calls_took_longer(books: Books) -> Int64s:
    """Than calls in other rows: graphs are optimized and compiled when they first run."""
    step, calls, traced = books.spent(Account.STEP), books.calls, _traced_in(books)
    longer = np.zeros(len(books), dtype=np.int64)
    for phase in (BookPhase.TRAIN, BookPhase.VALIDATION):
        rows = books.in_phase(phase) & (calls > 0)
        usual = rows & ~traced
        if usual.any():
            each = median(step[usual] / calls[usual])
            first = rows & traced
            longer[first] = np.maximum(step[first] - np.round(each * calls[first]), 0)
    return longer
