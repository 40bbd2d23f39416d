"""The books: every nanosecond of the training thread belongs to one account."""

from __future__ import annotations

import gc
import threading

import pytest

from stall_analyzer.captures.capture_format import Account, BookPhase
from stall_analyzer.captures.capture_records import BookItem, BooksRecord
from tb_stall_plugin.capture.training.books import FIRST_STEPS, MOST_ENTRIES, Books

MS = 1_000_000


class Clock:
    """Moves only when told."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def wait(self, ms: float) -> None:
        self.now_ns += round(ms * MS)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def books(clock: Clock) -> Books:
    kept = Books(clock)
    kept.begin()
    kept.phase_begins(BookPhase.TRAIN, epoch_began=True)
    list(kept.records())
    gc.callbacks.remove(kept._collecting)  # real collections do not follow our clock
    return kept


def ended(books: Books) -> BooksRecord:
    """The only record of what has ended."""
    books.close_row()
    (record,) = books.records()
    return record


def end_step(books: Books) -> None:
    """Does what the capture's hook does."""
    with books:
        books.steps_ended()


def spent_ms(record: BooksRecord) -> dict[str, float]:
    return {account: sum(column) / MS for account, column in record.spent_ns.items()}


def test_what_a_callback_calls_is_the_callbacks_own(books: Books, clock: Clock) -> None:
    callback = books.entry(Account.CALLBACK, "Report.on_epoch_end")
    books.enter(callback)
    clock.wait(5)
    assert books.top.rank >= books.entry(Account.STEP).rank, "a step may not interrupt it"
    books.leave()
    clock.wait(1)
    assert spent_ms(ended(books)) == {Account.CALLBACK: 5, Account.PYTHON: 1}


def test_building_a_graph_counts_as_such_whoever_calls_it(books: Books, clock: Clock) -> None:
    books.enter(books.entry(Account.STEP, "train"))
    clock.wait(2)
    traced = books.tracing(
        test_building_a_graph_counts_as_such_whoever_calls_it, "train", "train.py:3"
    )
    assert traced.rank > books.top.rank
    books.enter(traced)
    clock.wait(7)
    books.leave()
    clock.wait(3)
    books.leave()
    assert spent_ms(ended(books)) == {Account.STEP: 5, Account.TRACE: 7}


def test_a_function_is_traced_again_only_if_a_step_has_ended_since(books: Books) -> None:
    def step() -> None: ...

    assert books.tracing(step, "step", "").account == Account.TRACE
    assert books.tracing(step, "step", "").account == Account.TRACE  # Keras traces it twice
    books.steps_ended()
    assert books.tracing(step, "step", "").account == Account.RETRACE


def test_every_row_adds_up(books: Books, clock: Clock) -> None:
    for _ in range(3):
        clock.wait(1)
        books.enter(books.entry(Account.INPUT))
        clock.wait(2)
        books.leave()
        with books:
            clock.wait(0.5)
            books.steps_ended()
        clock.wait(0.25)
    (record,) = books.records()
    assert record.steps == (1, 1, 1)
    assert record.lasted_ns == tuple(
        sum(row) for row in zip(*record.spent_ns.values(), strict=True)
    )


def test_what_the_graph_measured_is_part_of_the_step_and_never_more(
    books: Books, clock: Clock
) -> None:
    books.in_steps = lambda: {Account.WAIT: 0.030}
    books.enter(books.entry(Account.STEP))
    clock.wait(20)
    books.leave()
    clock.wait(20)
    assert spent_ms(ended(books)) == {Account.STEP: 0, Account.WAIT: 20, Account.PYTHON: 20}


@pytest.mark.parametrize(
    ("account", "spent"),
    [
        (Account.CALLBACK, {Account.CALLBACK: 1, Account.GC: 4}),
        (Account.TRACE, {Account.TRACE: 5}),
    ],
)
def test_garbage_collection_is_taken_out_of_the_account_it_interrupts_unless_a_graph_is_built(
    account: str, spent: dict[str, int], books: Books, clock: Clock
) -> None:
    books.enter(books.entry(account, "Report.on_epoch_end"))
    clock.wait(1)
    books._collecting("start", {})
    clock.wait(4)
    books._collecting("stop", {})
    books.leave()
    assert spent_ms(ended(books)) == spent


def test_garbage_collection_in_other_threads_does_not_count(books: Books, clock: Clock) -> None:
    other = threading.Thread(target=books._collecting, args=("start", {}))
    other.start()
    other.join()
    clock.wait(4)
    books._collecting("stop", {})
    assert spent_ms(ended(books)) == {Account.PYTHON: 4}


def test_short_steps_share_a_row_once_there_were_many(books: Books, clock: Clock) -> None:
    for _ in range(FIRST_STEPS + 100):
        clock.wait(1)
        end_step(books)
    (record,) = books.records()
    assert sum(record.steps) == FIRST_STEPS + 100
    assert len(record.steps) == FIRST_STEPS + 2


def test_the_number_of_rows_grows_with_the_logarithm_of_the_time(
    books: Books, clock: Clock
) -> None:
    for _ in range(100_000):
        clock.wait(100)
        end_step(books)
    rows = sum(len(record.steps) for record in books.records())
    assert rows < 6000


def test_after_the_first_epoch_a_row_is_a_second(books: Books, clock: Clock) -> None:
    for _ in range(FIRST_STEPS):
        end_step(books)
    books.phase_begins(BookPhase.TRAIN, epoch_began=True)
    list(books.records())
    for _ in range(100):
        clock.wait(50)
        end_step(books)
    (record,) = books.records()
    assert record.epoch == 1
    assert len(record.steps) == 5


def test_a_row_in_progress_is_recorded_as_it_is(books: Books, clock: Clock) -> None:
    """A job that is killed while it traces leaves more than the steps before that."""
    books.enter(books.entry(Account.TRACE, "train", "train.py:3"))
    clock.wait(1500)
    (record,) = books.records()
    assert record.is_open
    assert spent_ms(record) == {Account.TRACE: 1500}
    assert record.items == (BookItem(Account.TRACE, "train", "train.py:3", 1, 1500 * MS),)


def test_items_belong_to_the_phase_in_which_they_were_spent(books: Books, clock: Clock) -> None:
    hook = books.entry(Account.CALLBACK, "Report.on_epoch_end", "train.py:9")
    for phase in (BookPhase.EPOCH_END, BookPhase.BETWEEN):
        books.enter(hook)
        clock.wait(3)
        books.leave()
        books.phase_begins(phase)
    train, end = books.records()
    assert (train.phase, end.phase) == (BookPhase.TRAIN, BookPhase.EPOCH_END)
    expected = (BookItem(Account.CALLBACK, "Report.on_epoch_end", "train.py:9", 1, 3 * MS),)
    assert train.items == expected == end.items


def test_names_that_are_new_in_each_step_do_not_fill_the_memory(books: Books) -> None:
    entries = {id(books.entry(Account.STEP, f"step_{n}")) for n in range(10 * MOST_ENTRIES)}
    assert len(entries) <= MOST_ENTRIES


def test_rows_of_one_of_several_workers_end_with_the_last_call_of_a_step(
    books: Books, clock: Clock
) -> None:
    """All workers meet there. What comes after it belongs to the way to the next meeting."""
    books.meets_others = True
    for _ in range(2):
        for function in ("gradients", "apply"):
            until_it_ends = books.call_begins(function)
            clock.wait(4)
            assert until_it_ends.after is not None
            until_it_ends.after(None, False)
        books.enter(books.entry(Account.CALLBACK, "Report.on_train_batch_end"))
        clock.wait(20)
        books.leave()
        books.steps_ended()
    record = ended(books)
    assert record.steps == (1, 1, 0)
    assert [ns / MS for ns in record.lasted_ns] == [8, 28, 20]
    assert [ns / MS for ns in record.spent_ns[Account.CALLBACK]] == [0, 20, 20]


def test_rows_of_several_workers_end_at_the_same_numbers_of_steps(clock: Clock) -> None:
    ends = []
    for each_ms in (1.0, 1.3):
        kept = Books(clock)
        kept.meets_others = True
        kept.begin()
        gc.callbacks.remove(kept._collecting)
        for _ in range(FIRST_STEPS + 100):
            clock.wait(each_ms)
            kept.steps_ended()
        rows = [steps for record in kept.records() for steps in record.steps]
        ends.append({sum(rows[: n + 1]) for n in range(len(rows))})
    common = ends[0] & ends[1]
    assert len(common) >= 0.9 * min(len(numbers) for numbers in ends)
