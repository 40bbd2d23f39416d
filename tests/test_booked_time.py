"""The ledger from the books of a capture, alone and together with a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stall_analyzer.attribute.attribute import attribute
from stall_analyzer.attribute.booked_time import agreement, with_books, without_overlap
from stall_analyzer.captures.books_reader import read_books
from stall_analyzer.captures.capture_format import Account, BookPhase, StopReason
from stall_analyzer.captures.capture_records import BooksRecord
from stall_analyzer.captures.failed_wait import with_failed_waits
from stall_analyzer.captures.look_records import CapturedError, DumpRecord
from stall_analyzer.model.books import Books
from stall_analyzer.model.causes import CAUSES, code
from stall_analyzer.model.event_log import Capture, EventLog, Series
from stall_analyzer.model.intervals import NOTHING, Tiling
from stall_analyzer.model.timeline import Timeline, Window
from stall_analyzer.model.units import PS_PER_MS

MS = 1_000_000
START_NS = 1_700_000_000 * 1_000_000_000

Row = Mapping[str, float]  # milliseconds by account


def record(
    *rows: Row,
    at_ms: float = 0,
    phase: str = BookPhase.TRAIN,
    is_open: bool = False,
    calls: int = 1,
) -> BooksRecord:
    accounts = dict.fromkeys(account for row in rows for account in row)
    return BooksRecord(
        ns=START_NS,
        began_ns=START_NS + round(at_ms * MS),
        phase=phase,
        epoch=0,
        lasted_ns=tuple(round(sum(row.values()) * MS) for row in rows),
        steps=tuple(1 for _ in rows),
        calls=tuple(calls for _ in rows),
        spent_ns={a: tuple(round(row.get(a, 0) * MS) for row in rows) for a in accounts},
        is_open=is_open,
    )


def books_of(*records: BooksRecord) -> Books:
    books, bad = read_books(records)
    assert books is not None and not bad
    return books


def window(ms: float) -> Window:
    return Window(0, round(ms * PS_PER_MS), "", "", epoch=0, clock_unix_ns=START_NS)


def profiled(ms: float, *tiles: tuple[float, str]) -> Tiling:
    """A profile of that many milliseconds, and nothing about the rest."""
    bounds = [0.0, *np.cumsum([length for length, _ in tiles]).tolist(), ms]
    labels = [code(cause) for _, cause in tiles]
    return Tiling(
        np.array([round(b * PS_PER_MS) for b in bounds], dtype=np.int64),
        np.array([*labels, NOTHING], dtype=np.int64),
    )


NOT_PROFILED: Sequence[tuple[float, str]] = ()


def ms_by_cause(tiling: Tiling) -> dict[str, float]:
    spent: dict[str, float] = {}
    for label, length in zip(tiling.labels, np.diff(tiling.bounds), strict=True):
        name = "nothing" if label == NOTHING else CAUSES[label]
        spent[name] = round(spent.get(name, 0) + length / PS_PER_MS, 3)
    return spent


def test_without_a_profile_the_accounts_are_the_causes() -> None:
    books = books_of(
        record({Account.TRACE: 60, Account.STEP: 30, Account.WAIT: 10}),
        record({Account.STEP: 10, Account.WAIT: 5, Account.PYTHON: 5}, at_ms=100),
        record({Account.CALLBACK: 30}, at_ms=120, phase=BookPhase.EPOCH_END, calls=0),
    )
    tiling = with_books(profiled(150, *NOT_PROFILED), books, window(150))
    assert ms_by_cause(tiling) == {
        "compile.tracing": 60,
        "compile.instantiate": 20,  # how much longer the first call took than a usual one
        "input.first_element": 10,
        "compute.step": 20,
        "input.wait": 5,
        "host.python": 5,
        "host.callback": 30,
    }


def test_steps_that_call_no_function_run_op_by_op() -> None:
    books = books_of(record({Account.PYTHON: 20}, calls=0))
    tiling = with_books(profiled(20), books, window(20))
    assert ms_by_cause(tiling) == {"host.eager": 20}


def test_in_steps_op_by_op_a_profile_separates_kernels_from_the_python_around_them() -> None:
    row = {Account.PYTHON: 10}
    books = books_of(record(row, row, row, calls=0))
    seen = profiled(30, (8, "compute.eager_op"), (2, "host.eager"))
    tiling = with_books(seen, books, window(30))
    assert ms_by_cause(tiling) == {"compute.eager_op": 24, "host.eager": 6}


def test_a_profile_divides_what_it_saw_and_tells_how_to_divide_the_rest() -> None:
    row = {Account.STEP: 10}
    books = books_of(record(row, row, row, row))
    seen = profiled(40, (5, "compute.step"), (5, "host.dispatch"))
    tiling = with_books(seen, books, window(40))
    assert ms_by_cause(tiling) == {"compute.step": 20, "host.dispatch": 20}


def test_xla_compiles_in_other_steps_only_if_it_does_in_most() -> None:
    row = {Account.STEP: 10}
    books = books_of(record(*[row] * 6))
    each = profiled(60, *[(4, "compute.step"), (6, "compile.xla")] * 3)
    assert ms_by_cause(with_books(each, books, window(60)))["compile.xla"] == 36
    once = profiled(60, (4, "compute.step"), (6, "compile.xla"), (20, "compute.step"))
    assert ms_by_cause(with_books(once, books, window(60)))["compile.xla"] == 6


def test_a_row_that_was_profiled_in_part_is_divided_by_the_books() -> None:
    books = books_of(record({Account.STEP: 10, Account.WAIT: 10}))
    tiling = with_books(profiled(20, (8, "compute.step")), books, window(20))
    assert ms_by_cause(tiling)["compute.step"] == 10


def test_the_caller_decides_whatever_the_profile_shows() -> None:
    """In a trace, the iterator of a predict() in a callback looks like training's own."""
    books = books_of(record({Account.CALLBACK: 80, Account.STEP: 20}))
    seen = profiled(100, (80, "input.iterator_teardown"), (20, "compute.step"))
    tiling = with_books(seen, books, window(100))
    assert ms_by_cause(tiling) == {"host.callback": 80, "compute.step": 20}


def test_tracing_takes_as_long_as_it_was_timed() -> None:
    """In a profile, it includes what makes a function of the graph."""
    row = {Account.RETRACE: 30, Account.STEP: 30}
    books = books_of(record(row, row), record({Account.STEP: 40}, at_ms=120))
    each = ((20, "compile.retracing"), (5, "input.wait"), (15, "compile.retracing"))
    seen = profiled(
        160, *each, (20, "compute.step"), *each, (20, "compute.step"), (40, "compute.step")
    )
    tiling = with_books(seen, books, window(160))
    assert ms_by_cause(tiling) == {
        "compile.retracing": 2 * 30,
        "compile.instantiate": 2 * 5,
        "input.wait": 2 * 5,
        "compute.step": 80,
    }


def test_tracing_that_was_not_timed_is_left_to_the_profile() -> None:
    books = books_of(record({Account.STEP: 40}))
    seen = profiled(40, (4, "compile.tracing"), (36, "compute.step"))
    tiling = with_books(seen, books, window(40))
    assert ms_by_cause(tiling) == {"compile.tracing": 4, "compute.step": 36}


def test_a_wait_in_which_the_step_computes_is_computing() -> None:
    """A regularizer needs no batch: it runs next to `get_next`, whose clock counts all of it."""
    row = {Account.WAIT: 40, Account.STEP: 60}
    books = books_of(record(row, row), record(row, at_ms=200))
    seen = profiled(300, *((4, "input.wait"), (96, "compute.step")) * 2)
    tiling = with_books(seen, without_overlap(seen, books, window(300)), window(300))
    found = ms_by_cause(tiling)
    assert found["input.wait"] == 3 * 4
    assert found["compute.step"] == 3 * 96


def test_small_differences_and_rows_without_a_profile_leave_the_clocks_alone() -> None:
    books = books_of(record({Account.WAIT: 40, Account.STEP: 60}))
    for seen in (
        profiled(100, (30, "input.wait"), (70, "compute.step")),
        profiled(100, (40, "input.first_element"), (60, "compute.step")),
        profiled(100, *NOT_PROFILED),
    ):
        assert without_overlap(seen, books, window(100)) is books


def test_a_save_is_one_although_a_profile_sees_only_python() -> None:
    books = books_of(record({Account.SAVE: 80, Account.STEP: 20}))
    seen = profiled(100, (80, "host.python"), (20, "compute.step"))
    tiling = with_books(seen, books, window(100))
    assert ms_by_cause(tiling) == {"host.checkpoint": 80, "compute.step": 20}


def test_python_that_a_profile_sees_between_steps_is_the_callbacks_if_they_took_most_of_it() -> (
    None
):
    books = books_of(record({Account.WAIT: 20, Account.STEP: 5, Account.CALLBACK: 9}))
    seen = profiled(
        34, (20, "input.wait"), (4, "compute.step"), (1, "host.dispatch"), (9, "host.python")
    )
    assert ms_by_cause(with_books(seen, books, window(34))) == {
        "input.wait": 20,
        "compute.step": 4,
        "host.dispatch": 1,
        "host.callback": 9,
    }


def test_the_evidence_says_how_far_clocks_and_profile_differ() -> None:
    books = books_of(record({Account.STEP: 90, Account.WAIT: 10}))
    seen = profiled(100, (12, "input.wait"), (88, "compute.step"))
    sentence, is_much = agreement(seen, books, window(100))
    assert "differ on input and tracing by 2%" in sentence and not is_much
    sentence, is_much = agreement(profiled(100), books, window(100))
    assert "none of it was profiled as well" in sentence and not is_much


def test_a_profile_that_differs_much_from_the_clocks_is_worth_a_warning() -> None:
    books = books_of(record({Account.WAIT: 80, Account.STEP: 20}))
    seen = profiled(100, (100, "compute.step"))
    sentence, is_much = agreement(seen, books, window(100))
    assert "by 80%" in sentence and is_much


def test_what_has_no_row_stays_unknown() -> None:
    books = books_of(record({Account.STEP: 10}, at_ms=50))
    tiling = with_books(profiled(100), books, window(100))
    assert ms_by_cause(tiling) == {"nothing": 90, "compute.step": 10}


def test_an_open_row_counts_until_it_is_written_again() -> None:
    first = record({Account.TRACE: 1000}, is_open=True)
    again = record({Account.TRACE: 1500, Account.STEP: 10})
    assert len(books_of(first)) == 1
    assert books_of(first, again).spent(Account.TRACE).tolist() == [1500 * MS]


def test_rows_that_do_not_add_up_are_left_out_and_counted() -> None:
    good, bad = record({Account.STEP: 10}), record({Account.STEP: 10}, at_ms=10)
    wrong = BooksRecord(**{**vars(bad), "lasted_ns": (99,)})
    uneven = BooksRecord(**{**vars(bad), "steps": ()})
    negative = BooksRecord(**{**vars(bad), "spent_ns": {Account.STEP: (-5,)}})
    books, left_out = read_books([good, wrong, uneven, negative])
    assert books is not None and len(books) == 1
    assert left_out == 3


def test_the_wait_that_an_error_of_the_input_ended_was_for_input() -> None:
    usual = {Account.WAIT: 160, Account.STEP: 2}
    rows = record(usual, usual, usual, {Account.PYTHON: 1, Account.STEP: 20_000})
    after = record({Account.PYTHON: 3}, at_ms=20_487, phase=BookPhase.BETWEEN, calls=0)
    of_input = "{{function_node f}} OSError: reset\n\t [[{{node PyFunc}}]]\n\t [[IteratorGetNext]]"
    others = "Incompatible shapes: [8] vs. [4]\n\t [[{{node gradients/sub}}]]"
    waited, computed = (
        with_failed_waits(books_of(rows, after), [failed(text, at_ms=20_490)])
        for text in (of_input, others)
    )
    assert (waited.spent(Account.WAIT) / MS).tolist() == [160, 160, 160, 19_998, 0]
    assert (waited.spent(Account.STEP) / MS).tolist() == [2, 2, 2, 2, 0]
    assert computed.spent(Account.WAIT).max() == 160 * MS


def failed(text: str, at_ms: float) -> DumpRecord:
    return DumpRecord(
        ns=START_NS + round(at_ms * MS),
        step=3,
        idle_s=20.0,
        reason=StopReason.EXCEPTION,
        error=CapturedError("Error", text),
    )


def test_nobody_kept_any_books() -> None:
    assert read_books([]) == (None, 0)


def test_steps_whose_updates_a_loss_scale_skipped_are_computed_for_nothing() -> None:
    """The count is looked at after steps 0, 1 and 3: all of the first two were skipped, then one of
    two, of which nobody knows which one."""
    row = {Account.STEP: 10}
    skips = Series(
        np.array([0, 1, 3]),
        np.array([START_NS + end * MS for end in (10, 20, 40)]),
        np.array([1.0, 2.0, 3.0]),
    )
    capture = Capture(books=books_of(record(row, row, row, row)), series={"skipped_updates": skips})
    events = EventLog({}, {}, None, None, None, None, 0, captures=(capture,))
    timeline = Timeline(window(40), (), (), (), (), events)
    (host,) = attribute(timeline)
    assert host.ledger.causes_ps["numerics.skipped_update"] == 20 * PS_PER_MS
    assert host.ledger.causes_ps["compute.step"] == 20 * PS_PER_MS
