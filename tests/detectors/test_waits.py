"""What a run that hangs waits in, in fit and outside of it, and what never ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stall_analyzer.signals.ending.stall import ENDLESS, SLOW, STUCK
from tests import captures as write
from tests.captures import GENERATOR, IN_A_CALLBACK, NS, QUEUE, SITE, native, thread
from tests.detectors.stalls import (
    LAST_STEP_S,
    MAIN_WAITS,
    STARVED,
    STEPS,
    WAITING,
    Json,
    before,
    held,
    judged,
    stall,
    state_of,
)

# ---------------------------------------------------------------- what it waits in


@pytest.mark.parametrize(
    ("call", "on", "words", "advice"),
    [
        ("recvfrom", "the socket to 10.0.0.7:443", "(the socket to 10.0.0.7:443)", "timeout"),
        ("flock", "/data/lock", "is waiting for the lock on the file /data/lock", "LOCK_NB"),
        ("openat", "the named pipe /tmp/best", "is waiting to open the named pipe /tmp/best", ""),
        ("read", "standard input", "is waiting for the user", ""),
        ("write", "a pipe", "is waiting for another process to read from the pipe", "communicate"),
        ("wait4", "process 9", "is waiting for another process (process 9)", "communicate"),
    ],
)
def test_a_wait_in_c_is_named_by_the_call_and_what_it_is_about(
    tmp_path: Path, call: str, on: str, words: str, advice: str
) -> None:
    looks = stall(thread(*IN_A_CALLBACK, main=True, wait=call, on=on))
    _, finding, verdict = judged(write.read(tmp_path, before() + looks))
    assert verdict.status == "stuck"
    assert f"the callback at train.py:41 {words}" in verdict.sentence or words in verdict.sentence
    assert finding is not None and advice in finding.change.after


def test_what_other_threads_compute_does_not_end_a_wait_for_somebody_outside(
    tmp_path: Path,
) -> None:
    """It never got a core between the looks: it stays in that one call."""
    waiting = thread(*IN_A_CALLBACK, main=True, wait="recvfrom", on="a socket", turns=7)
    assert state_of(write.read(tmp_path, before() + stall(waiting, cores=0.5))) == STUCK


def test_a_socket_through_which_something_comes_is_slow(tmp_path: Path) -> None:
    def served(idle: int) -> Json:
        return thread(*IN_A_CALLBACK, main=True, wait="recvfrom", turns=100 * idle)

    assert state_of(write.read(tmp_path, before() + stall(served))) == SLOW


def polling(idle: int) -> Json:
    loop = {"word": "while", "line": 40, "last": 41}
    return thread(*IN_A_CALLBACK, main=True, wait="clock_nanosleep", turns=idle, loop=loop)


def test_a_loop_that_sleeps_and_looks_again_is_stuck_and_one_long_sleep_is_slow(
    tmp_path: Path,
) -> None:
    verdict = judged(write.read(tmp_path, before() + stall(polling)))[2]
    assert verdict.status == "stuck" and "keeps sleeping and checking" in verdict.sentence
    asleep = stall({**polling(0), "turns": 5})
    assert state_of(write.read(tmp_path, before() + asleep)) == SLOW


def test_a_library_that_sleeps_and_looks_again_is_stuck(tmp_path: Path) -> None:
    """As with a database whose table is locked: the user's line is a single call."""

    def locked(idle: int) -> Json:
        return thread(*IN_A_CALLBACK, main=True, wait="clock_nanosleep", turns=10 * idle)

    verdict = judged(write.read(tmp_path, before() + stall(locked)))[2]
    assert verdict.status == "stuck" and "inside the call on that line" in verdict.sentence


def test_a_process_that_is_waited_for_and_computes_is_slow(tmp_path: Path) -> None:
    def child(cores: float) -> Callable[[int], list[Json]]:
        return lambda idle: [{"pid": 9, "name": "sh", "state": "R", "cpu_s": cores * idle}]

    waiting = thread(*IN_A_CALLBACK, main=True, wait="wait4", on="process 9")
    busy = stall(waiting, children=child(0.9))
    assert state_of(write.read(tmp_path, before() + busy)) == SLOW
    idle = stall(waiting, children=child(0.0))
    found = judged(write.read(tmp_path, before() + idle))[0]
    assert found is not None and found.state == STUCK
    assert "(process 9, sh)" in found.sentence


def test_a_thread_that_looks_around_now_and_then_is_no_work_of_the_training(
    tmp_path: Path,
) -> None:
    def monitor(idle: int) -> Json:
        place = "/home/me/monitor.py:9 watch"
        return thread(place, name="monitor", wait="clock_nanosleep", ran_ns=idle * NS // 10)

    looks = stall(*STARVED, monitor, cores=0.1)
    assert state_of(write.read(tmp_path, before() + looks)) == STUCK


def test_readings_that_are_too_close_say_nothing_about_the_rate(tmp_path: Path) -> None:
    """A sample of the host just after each look: what is between them is the look itself."""
    looks = stall(*STARVED)
    samples = [
        write.scalars(LAST_STEP_S + n + 0.001, STEPS, host__cpu_seconds=3 + 0.004 * n + 0.001)
        for n in range(5, 20)
    ]
    assert state_of(write.read(tmp_path, before() + looks + samples)) == STUCK


def test_a_worker_process_that_does_not_answer(tmp_path: Path) -> None:
    pool = (
        f"{write.LIBRARY}/threading.py:629 Event.wait",
        f"{write.LIBRARY}/multiprocessing/pool.py:768 ApplyResult.get",
        f"{SITE}/keras/src/trainers/data_adapters/py_dataset_adapter.py:667 OrderedEnqueuer.get",
    )
    looks = stall(MAIN_WAITS, thread(*pool, *GENERATOR[1:], wait="futex"))
    _, finding, verdict = judged(write.read(tmp_path, before() + looks))
    assert (verdict.status, verdict.primary) == ("stuck", "input")
    assert "multiprocessing.pool.ApplyResult.get() for a worker process" in verdict.sentence
    assert finding is not None and "was killed" in finding.change.text


def test_the_other_half_of_a_deadlock_is_told(tmp_path: Path) -> None:
    future = (f"{write.LIBRARY}/concurrent/futures/_base.py:451 Future.result",)
    other = thread(*future, "/home/me/train.py:9 upload", name="pool-0", wait="futex")
    looks = stall(thread(*future, *IN_A_CALLBACK, main=True, wait="futex"), other)
    _, finding, verdict = judged(write.read(tmp_path, before() + looks))
    assert "train.py:41 is waiting in concurrent.futures.Future.result()" in verdict.sentence
    assert finding is not None and "same pool" in finding.change.text
    assert "Meanwhile: pool-0 at train.py:9 is waiting in concurrent" in finding.explanation


def test_a_file_that_a_thread_of_tensorflow_waits_for_is_named(tmp_path: Path) -> None:
    opens = {**native("openat"), "on": "the named pipe /data/train.csv"}
    looks = stall(MAIN_WAITS, kernel=[native("futex", count=9), opens])
    verdict = judged(write.read(tmp_path, before() + looks))[2]
    assert (verdict.status, verdict.primary) == ("stuck", "input")
    assert "is waiting to open the named pipe /data/train.csv" in verdict.sentence


# ---------------------------------------------------------------- endless


def spinning(idle: int, is_empty: bool = True) -> Json:
    loop = {"word": "while", "line": 40, "last": 41, "is_empty": is_empty}
    return thread(*IN_A_CALLBACK, main=True, ran_ns=idle * NS, loop=loop)


def test_a_while_loop_with_nothing_in_it_is_endless(tmp_path: Path) -> None:
    found, finding, verdict = judged(write.read(tmp_path, before() + stall(spinning, cores=1.0)))
    assert found is not None and found.state == ENDLESS
    assert verdict.status == "stuck" and "lines 40 to 41" in verdict.sentence
    assert finding is not None and "Wait" not in finding.change.text


def test_a_loop_that_may_take_long_is_slow_but_nobody_is_told_to_wait_only(tmp_path: Path) -> None:
    looks = stall(lambda idle: spinning(idle, is_empty=False), cores=1.0)
    found, finding, _ = judged(write.read(tmp_path, before() + looks))
    assert found is not None and found.state == SLOW
    assert "the callback at train.py:41 was at work" in found.sentence
    assert finding is not None and "whether the loop can end" in finding.change.text


def test_a_regular_expression_that_holds_the_interpreter_is_endless(tmp_path: Path) -> None:
    matching = held(f"{write.LIBRARY}/re/__init__.py:166 match", *IN_A_CALLBACK, steps=STEPS)
    found, finding, _ = judged(write.read(tmp_path, [*before(), matching]))
    assert found is not None and found.state == ENDLESS
    assert finding is not None and "pattern" in finding.change.text


def test_a_function_whose_tracing_does_not_end_is_compile(tmp_path: Path) -> None:
    tracing = thread(
        f"{SITE}/tensorflow/python/framework/ops.py:1078 _create_c_op",
        "/home/me/train.py:30 step",
        f"{SITE}/tensorflow/python/framework/func_graph.py:1060 func_graph_from_py_func",
        "/home/me/train.py:88 <module>",
        main=True,
    )
    found, finding, _ = judged(write.read(tmp_path, before() + stall(tracing, cores=1.0)))
    assert found is not None and (found.state, found.bucket) == (SLOW, "compile")
    assert "the traced function at train.py:30" in found.sentence
    assert finding is not None and "tf.range" in finding.change.after


# ---------------------------------------------------------------- outside of fit


def test_a_hang_after_fit_is_stuck(tmp_path: Path) -> None:
    over = [write.mark("epoch_end", 10.0), write.mark("fit_end", 10.0)]
    looks = stall(*STARVED, phase="idle")
    verdict = judged(write.read(tmp_path, [*before(), *over, *looks]))[2]
    assert (verdict.status, verdict.primary) == ("stuck", "input")


def test_a_program_that_computes_after_fit_is_no_stall(tmp_path: Path) -> None:
    over = [write.mark("epoch_end", 10.0), write.mark("fit_end", 10.0)]
    looks = stall(MAIN_WAITS, phase="idle", cores=1.0)
    assert state_of(write.read(tmp_path, [*before(), *over, *looks])) is None


def test_a_process_that_does_not_exit_names_the_thread(tmp_path: Path) -> None:
    over = [write.mark("epoch_end", 10.0), write.mark("fit_end", 10.0)]
    exiting = thread(f"{write.LIBRARY}/threading.py:1583 _shutdown", main=True, wait="futex")
    event = f"{write.LIBRARY}/threading.py:629 Event.wait"
    keeps = thread(event, name="uploader", wait="futex", keeps_alive=True)
    looks = stall(exiting, keeps, phase="idle")
    _, finding, verdict = judged(write.read(tmp_path, [*before(), *over, *looks]))
    assert (verdict.status, verdict.primary) == ("stuck", "host")
    said = "does not exit: the thread uploader, which is not a daemon, is waiting in"
    assert said in verdict.sentence
    assert finding is not None and "daemon=True" in finding.change.after


def test_before_fit_only_the_last_place_counts(tmp_path: Path) -> None:
    """It reads files for ten seconds, and then hangs."""
    reading = stall(thread("/home/me/train.py:5 read", main=True), phase="startup", steps=0)
    hangs = thread("/home/me/train.py:7 load", main=True, wait="recvfrom")
    looks = [*reading[:6], *stall(hangs, phase="startup", steps=0)[6:]]
    found = judged(write.read(tmp_path, before(steps=0) + looks))[0]
    assert found is not None and found.state == STUCK
    assert found.since_ns == write.START_NS + round((LAST_STEP_S + 11) * NS)


def test_a_loop_without_marks_that_computes_is_no_stall(tmp_path: Path) -> None:
    looks = stall(MAIN_WAITS, phase="startup", steps=0, cores=1.5)
    assert state_of(write.read(tmp_path, before(steps=0) + looks)) is None


def test_an_interrupt_that_ends_the_fit_does_not_hide_the_hang(tmp_path: Path) -> None:
    """In a notebook, the kernel continues and waits for its user."""
    interrupt = write.record(
        "dump", 31.0, reason="sigint", step=STEPS, idle_s=21.0, phase="train_batch",
        threads=list(STARVED), native=list(WAITING),
    )  # fmt: skip
    left = write.mark("fit_end", 31.5)
    log = write.read(tmp_path, [*before(), *stall(*STARVED), interrupt, left])
    assert judged(log)[2].status == "stuck"


def test_what_the_process_does_after_an_interrupt_is_not_what_hung(tmp_path: Path) -> None:
    """Before it exits, it waits for a thread that is not a daemon."""
    looks = stall(thread(*IN_A_CALLBACK, main=True, wait="flock", on="/data/lock"), seconds=18)
    told = {"step": STEPS, "phase": "between_batches", "threads": [thread(main=True)]}
    interrupt = write.record("dump", 28.0, reason="sigint", idle_s=18.0, **told)
    error = {"type": "KeyboardInterrupt", "frames": list(IN_A_CALLBACK), "uncaught": True}
    died = write.record("dump", 28.1, reason="exception", idle_s=18.1, error=error, **told)
    exits = thread(f"{write.LIBRARY}/threading.py:1583 _shutdown", main=True, wait="futex")
    left = write.mark("fit_end", 29.5)
    later = write.record("beat", 35.0, idle_s=5.5, **{**told, "threads": [exits], "phase": "idle"})
    log = write.read(tmp_path, [*before(), *looks, interrupt, died, left, later])
    verdict = judged(log)[2]
    assert verdict.status == "stuck" and "/data/lock" in verdict.sentence


def test_a_signal_of_its_own_makes_no_stall_of_a_healthy_run(tmp_path: Path) -> None:
    dump = write.record(
        "dump", LAST_STEP_S + 0.1, reason="sigterm", step=STEPS, idle_s=0.1, phase="train_batch",
        threads=[MAIN_WAITS], native=list(WAITING),
    )  # fmt: skip
    end = write.record("end", LAST_STEP_S + 0.2, reason="sigterm")
    found, _, verdict = judged(write.read(tmp_path, [*before(), dump, end]))
    assert found is None
    assert verdict.sentence.endswith("told to terminate (SIGTERM).")


def test_what_a_signal_wakes_is_not_what_it_waits_in(tmp_path: Path) -> None:
    """The call that SIGTERM interrupts is over when its own look is taken."""
    looks = stall(thread(*IN_A_CALLBACK, main=True, wait="flock", on="/data/lock"))
    dump = write.record(
        "dump", 30.5, reason="sigterm", step=STEPS, idle_s=20.5, phase="train_batch",
        threads=[thread(*IN_A_CALLBACK, main=True)], native=list(WAITING),
    )  # fmt: skip
    verdict = judged(write.read(tmp_path, [*before(), *looks, dump]))[2]
    assert verdict.status == "stuck" and "/data/lock" in verdict.sentence


# ---------------------------------------------------------------- locks of Python's


def lock(name: str) -> Json:
    """By its last word, whatever object it is an attribute of."""
    return {"id": hash(name.rpartition(".")[2]), "name": name}


def waits_for(wanted: str, *held: str, name: str = "") -> Json:
    """The callback, unless another thread is named."""
    frames = (f"/home/me/train.py:60 {name}",) if name else IN_A_CALLBACK
    locks = {"waits_for": lock(wanted), "holds": [lock(each) for each in held]}
    return thread(*frames, main=not name, wait="futex", name=name, **locks)


def test_a_deadlock_is_named_with_its_locks_and_who_holds_them(tmp_path: Path) -> None:
    here = waits_for("self.file", "self.numbers")
    there = waits_for("report.numbers", "report.file", name="writer")
    _, finding, verdict = judged(write.read(tmp_path, before() + stall(here, there)))
    assert verdict.status == "stuck"
    assert (
        "the callback at train.py:41 is in a deadlock: it is waiting for the lock self.file, "
        "which the thread writer holds; the thread writer at train.py:60 is waiting for the lock "
        "report.numbers, which the main thread holds" in verdict.sentence
    )
    assert finding is not None and "same order" in finding.change.text


def test_three_threads_may_be_in_one_deadlock(tmp_path: Path) -> None:
    threads = (
        waits_for("b", "a"),
        waits_for("c", "b", name="one"),
        waits_for("a", "c", name="two"),
    )
    sentence = judged(write.read(tmp_path, before() + stall(*threads)))[2].sentence
    assert "it is waiting for the lock b, which the thread one holds;" in sentence
    assert (
        "the thread one at train.py:60 is waiting for the lock c, which the thread two" in sentence
    )
    assert (
        "the thread two at train.py:60 is waiting for the lock a, which the main thread" in sentence
    )


def test_a_lock_that_is_acquired_twice_by_one_thread_is_its_own_fault(tmp_path: Path) -> None:
    twice = waits_for("lock", "lock")
    _, finding, verdict = judged(write.read(tmp_path, before() + stall(twice)))
    assert (
        "is waiting for the lock lock, which it holds itself, and will never continue"
        in verdict.sentence
    )
    assert finding is not None and "RLock" in finding.change.after


def test_who_holds_the_lock_is_named_with_what_it_does_there(tmp_path: Path) -> None:
    holder = thread(*QUEUE, "/home/me/train.py:70 fill", name="filler", holds=[lock("lock")])
    verdict = judged(write.read(tmp_path, before() + stall(waits_for("lock"), holder)))[2]
    assert (
        "is waiting for the lock lock, which the thread filler holds at train.py:70, where it is "
        "waiting in queue.Queue.get(), and will never continue" in verdict.sentence
    )


def test_of_a_lock_whose_holder_is_not_known_only_its_name_is_said(tmp_path: Path) -> None:
    sentence = judged(write.read(tmp_path, before() + stall(waits_for("lock"))))[2].sentence
    assert "at train.py:41 is waiting for the lock lock and will never continue" in sentence


def test_a_wait_for_threads_that_are_in_a_deadlock_names_it(tmp_path: Path) -> None:
    joins = thread(*QUEUE, *IN_A_CALLBACK, main=True, wait="futex")
    dead = waits_for("b", "a", name="one"), waits_for("a", "b", name="two")
    _, finding, verdict = judged(write.read(tmp_path, before() + stall(joins, *dead)))
    said = "is waiting in queue.Queue.get(), while the thread one at train.py:60 is in a deadlock"
    assert said in verdict.sentence
    assert finding is not None and "same order" in finding.change.text
