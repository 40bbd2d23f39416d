"""Which worker alone a coordinator waits for, and what its steps take their time for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from stall_analyzer.captures.capture_format import Account
from tb_stall_plugin.capture.training import input_wait, remote_steps
from tb_stall_plugin.capture.training.books import Books
from tb_stall_plugin.capture.training.input_wait import InputWait
from tb_stall_plugin.capture.training.remote_input import RemoteInput
from tb_stall_plugin.capture.training.remote_steps import RemoteSteps, Spent
from tb_stall_plugin.capture.training.remote_workers import RemoteWorkers
from tests.capture.small_trainings import tf

LOCAL = "/job:localhost/replica:0/task:0"
SLEEP_S = 0.02


class Clock:
    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


class Worker:
    device_name = LOCAL

    def __init__(self, index: int = 3) -> None:
        self.worker_index = index


class Closure:
    """As ClusterCoordinator makes them of scheduled functions."""

    def __init__(self, function: Any) -> None:
        self._concrete_function = function


class Sums:
    """Stands in for what the workers have added up."""

    def __init__(self, *answers: float | Exception) -> None:
        self._answers = list(answers)

    def is_known(self, function: Any) -> bool:
        return bool(function)

    def read(self, worker: str) -> dict[str, float]:
        assert worker == LOCAL
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"train.py:7 step": answer}


def remote_workers(clock: Clock) -> RemoteWorkers:
    return RemoteWorkers(RemoteSteps(RemoteInput(), clock), clock)


def test_only_a_wait_for_a_single_worker_counts() -> None:
    clock = Clock()
    workers = remote_workers(clock)
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
    workers = remote_workers(Clock())

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


# ---------------------------------------------------------------- what its steps take


def spent_by(sums: Sums, *seconds: float, known: bool = True) -> list[Spent]:
    """By steps that take that long, one after another."""
    clock = Clock()
    steps = RemoteSteps(sums, clock)  # type: ignore[arg-type]
    for each in seconds:
        clock.now_ns += round(1e9 * each)
        steps.ran(Worker(), Closure(known), round(1e9 * each))
    return steps.taken()


def test_what_a_worker_waits_is_told_for_the_same_steps_as_what_it_runs() -> None:
    """The first step also has to be prepared there, and only begins the count."""
    assert remote_steps.EVERY_NS == 1e9
    assert spent_by(Sums(5.0, 5.9), 9.0, 0.6, 0.6, 0.6) == [
        Spent(Account.REMOTE_STEP, 3, "", 2, 1_200_000_000),
        Spent(Account.REMOTE_WAIT, 3, "train.py:7 step", 2, 900_000_000),
    ]


def test_workers_are_asked_ever_more_rarely() -> None:
    asked = spent_by(Sums(*range(1000)), *[1.0] * 1000)
    assert 80 < sum(each.account == Account.REMOTE_STEP for each in asked) < 110


def test_the_sums_of_a_server_that_was_started_again_begin_at_0() -> None:
    _, waited = spent_by(Sums(5.0, 0.5), 1.0, 1.0)
    assert waited.ns == 500_000_000


def test_a_worker_that_cannot_be_asked_is_no_error_but_less_evidence() -> None:
    gone = RuntimeError("the worker is gone")
    assert spent_by(Sums(gone), 1.0) == []
    # What ran while it could not be asked is unknown. Then it counts again.
    assert [s.steps for s in spent_by(Sums(5.0, gone, 6.0, 6.5), 1.0, 1.0, 1.0, 1.0)] == [1, 1]


def test_steps_whose_input_is_not_timed_say_nothing() -> None:
    assert spent_by(Sums(), 1.0, 1.0, 1.0, known=False) == []


def test_what_ran_while_nobody_kept_books_does_not_count() -> None:
    clock = Clock()
    steps = RemoteSteps(Sums(5.0, 9.0), clock)  # type: ignore[arg-type]
    steps.ran(Worker(), Closure(True), 1)
    steps.forget()
    clock.now_ns = 5_000_000_000
    steps.ran(Worker(), Closure(True), 1)
    assert steps.taken() == []


def test_what_workers_spend_is_no_time_of_the_training_thread() -> None:
    books = Books(Clock())
    books.begin()
    try:
        books.note(books.entry(Account.REMOTE_STEP, "worker 1"), 4, 70)
        books.close_row()
        (record, *_) = books.records()
    finally:
        books.end()
    assert not record.spent_ns
    (item,) = record.items
    assert (item.account, item.name, item.count, item.spent_ns) == (
        *("remote_step", "worker 1"),
        *(4, 70),
    )


# ---------------------------------------------------------------- clocks in their steps


@pytest.fixture
def coordinated(monkeypatch: pytest.MonkeyPatch) -> InputWait:
    """As under a ParameterServerStrategy, except that the steps run here."""
    monkeypatch.setattr(input_wait, "is_coordinated", lambda strategy: True)
    return InputWait()


def batches() -> Any:
    def slow(number: Any) -> Any:
        def asleep(value: Any) -> Any:
            time.sleep(SLEEP_S)
            return value

        return tf.ensure_shape(tf.numpy_function(asleep, [number], tf.int64), [])

    return iter(tf.data.Dataset.range(100).map(slow))


def step_with(fetch: Callable[[Any], Any]) -> Any:
    @tf.function(autograph=False)
    def step(iterator: Any) -> Any:
        return fetch(iterator) * 2

    return step


def test_waits_are_added_up_where_the_step_runs_and_by_line(coordinated: InputWait) -> None:
    step = step_with(lambda it: coordinated.around(lambda: next(it)))
    iterator = batches()
    assert [int(step(iterator)) for _ in range(4)] == [0, 2, 4, 6]
    assert step.experimental_get_tracing_count() == 1
    ((place, waited_s),) = coordinated.elsewhere.read(LOCAL).items()
    assert f"{__file__}:" in place
    # Another clock than that of the sleeps, which differs from it by microseconds.
    assert 0.99 * 4 * SLEEP_S <= waited_s < 40 * SLEEP_S
    assert coordinated.elsewhere.is_known(step.get_concrete_function(iterator))
    assert coordinated.take() == 0.0, "nothing is left in this process"


def test_a_worker_that_never_ran_the_step_has_waited_for_nothing(coordinated: InputWait) -> None:
    step = step_with(lambda it: coordinated.around(lambda: next(it)))
    step.get_concrete_function(batches())
    assert sum(coordinated.elsewhere.read(LOCAL).values()) == 0.0


def test_what_a_loop_in_the_step_fetches_is_not_known(coordinated: InputWait) -> None:
    def several(iterator: Any) -> Any:
        return tf.while_loop(
            lambda n, total: n < 3,
            lambda n, total: (n + 1, total + coordinated.around(lambda: next(iterator))),
            (0, tf.constant(0, tf.int64)),
        )[1]

    step, iterator = step_with(several), batches()
    assert int(step(iterator)) == 6
    assert not coordinated.elsewhere.is_known(step.get_concrete_function(iterator))


def test_a_step_that_was_traced_before_is_known_only_without_input(coordinated: InputWait) -> None:
    fetches = step_with(next).get_concrete_function(batches())
    computes = step_with(lambda x: x).get_concrete_function(tf.constant(1))
    assert not coordinated.elsewhere.is_known(fetches)
    assert coordinated.elsewhere.is_known(computes)
