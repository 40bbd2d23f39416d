"""Which worker alone a coordinator waits for."""

from __future__ import annotations

from stall_analyzer.captures.capture_format import Account
from tb_stall_plugin.capture.training.books import Books
from tb_stall_plugin.capture.training.remote_workers import RemoteWorkers


class Clock:
    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


def test_only_a_wait_for_a_single_worker_counts() -> None:
    clock = Clock()
    workers = RemoteWorkers(clock)
    workers.begins(0)
    clock.now_ns = 5
    workers.begins(1)
    clock.now_ns = 10  # until here, nobody waited
    workers.wait_begins()
    clock.now_ns = 30  # until here, it was a wait for both
    workers.ends(0)
    clock.now_ns = 100  # until here, for worker 1 alone
    workers.ends(1)
    clock.now_ns = 120
    assert workers.wait_ends() == {1: 70}
    workers.wait_begins()
    assert not workers.wait_ends(), "it has been told"


def test_a_worker_whose_step_fails_is_no_longer_waited_for() -> None:
    workers = RemoteWorkers(Clock())

    class Worker:
        worker_index = 3

    def fails(worker: Worker, closure: str) -> None:
        raise RuntimeError(closure)

    try:
        workers.timed(fails)(Worker(), "step")
    except RuntimeError as error:
        assert str(error) == "step"
    workers.wait_begins()
    assert not workers.wait_ends()


def test_what_is_handed_to_a_worker_leaves_its_account_as_it_was() -> None:
    clock = Clock()
    books = Books(clock)
    books.begin()
    try:
        whole, part = books.entry(Account.REMOTE), books.entry(Account.REMOTE, "worker 1")
        books.enter(whole)
        clock.now_ns = 100
        books.leave()
        books.hand_over(whole, part, 70)
        books.close_row()
        (record, *_) = books.records()
    finally:
        books.end()
    assert record.spent_ns[Account.REMOTE] == (100,)
    (item,) = record.items
    assert (item.name, item.count, item.spent_ns) == ("worker 1", 1, 70)
