"""Slow, stuck or dead: what a capture shows about a run that does not continue."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from stall_analyzer.align.align import align
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.signals.ending.stall import ENDLESS, SLOW, STUCK, UNSURE, Stall
from stall_analyzer.signals.ending.stalled import stall_of_run
from tests import captures as write
from tests.captures import GENERATOR, IN_A_CALLBACK, IN_THE_STEP, NS, QUEUE, SITE, native, thread
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
from tests.detectors.training import diagnosed


def test_a_generator_that_waits_for_ever_is_stuck_on_input(tmp_path: Path) -> None:
    found, finding, verdict = judged(write.read(tmp_path, before() + stall(*STARVED)))
    assert found is not None and found.state == STUCK
    assert (verdict.status, verdict.primary) == ("stuck", "input")
    assert (
        "(after 37 steps): the generator at data.py:12 is waiting in queue.Queue.get()"
        in verdict.sentence
    )
    assert finding is not None and finding.severity == "act"
    assert "/home/me/data.py:12 batches" in finding.explanation, "the line that proves it"
    assert "timeout" in finding.change.after
    assert finding.lost_ps > 0


def test_a_lock_in_a_callback_is_stuck_on_the_host(tmp_path: Path) -> None:
    """A lock is acquired in C: its only frame is the caller's, and the kernel says futex."""
    waiting = thread(*IN_A_CALLBACK, main=True, wait="futex")
    verdict = judged(write.read(tmp_path, before() + stall(waiting, phase="between_batches")))[2]
    assert (verdict.status, verdict.primary) == ("stuck", "host")
    assert "the callback at train.py:41 is waiting for a lock" in verdict.sentence


@pytest.mark.parametrize(
    ("wait", "python", "state"),
    [
        ("clock_nanosleep", "3.11.4", SLOW),
        ("hrtimer_nanosleep", "3.12.0", SLOW),
        ("select", "3.10.9", SLOW),  # how Python slept until 3.10
        ("select", "3.12.0", STUCK),
        ("futex", "3.10.9", STUCK),
        ("wait4", "3.12.0", STUCK),
        ("pread64", "3.12.0", UNSURE),  # a disk may still answer
    ],
)
def test_a_sleep_is_slow_and_what_cannot_be_told_from_it_is_not_called_stuck(
    tmp_path: Path, wait: str, python: str, state: str
) -> None:
    """time.sleep() leaves no frame: the system call that the thread is in tells."""
    looks = stall(thread(*IN_A_CALLBACK, main=True, wait=wait))
    found, _, verdict = judged(write.read(tmp_path, before(python=python) + looks))
    assert found is not None and found.state == state
    assert (verdict.status == "stuck") == (state == STUCK)


@pytest.mark.parametrize(
    ("kernel", "state"),
    [
        ([native("futex", count=9)], STUCK),
        ([native("futex"), native("clock_nanosleep")], UNSURE),  # it may be the one that sleeps
        ([native("futex"), native("", state="D")], UNSURE),
        ([], UNSURE),  # the kernel does not say
    ],
)
def test_of_a_thread_of_tensorflow_only_all_threads_together_are_known(
    tmp_path: Path, kernel: Sequence[Json], state: str
) -> None:
    looks = stall(MAIN_WAITS, thread(*GENERATOR), kernel=kernel)
    assert state_of(write.read(tmp_path, before() + looks)) == state


def test_a_process_that_computes_is_slow(tmp_path: Path) -> None:
    looks = stall(MAIN_WAITS, thread(*GENERATOR), cores=0.97)
    found, finding, verdict = judged(write.read(tmp_path, before() + looks))
    assert found is not None and found.state == SLOW
    assert "97% of a core" in found.why
    assert finding is not None and finding.severity == "note"
    assert verdict.status != "stuck"


def test_saving_a_profile_in_the_middle_is_no_work_of_the_training(tmp_path: Path) -> None:
    looks = stall(*STARVED)
    later = stall(*STARVED, cores=0.1)  # two seconds in all
    assert state_of(write.read(tmp_path, before() + looks[:9] + [later[-1]])) == STUCK


def test_a_process_that_reads_is_slow(tmp_path: Path) -> None:
    reads = [write.scalars(LAST_STEP_S + n, STEPS, host__read_bytes=n * 5e6) for n in range(20)]
    assert state_of(write.read(tmp_path, before() + reads + stall(*STARVED))) == SLOW


def test_pages_that_come_back_where_memory_is_short_are_no_reading(tmp_path: Path) -> None:
    def state(free: float, faults: float) -> str | None:
        host = [
            write.scalars(
                LAST_STEP_S + n, STEPS, host__read_bytes=n * 5e6, host__major_faults=n * faults,
                host__available_bytes=free, host__limit_bytes=10e9,
            )
            for n in range(20)
        ]  # fmt: skip
        return state_of(write.read(tmp_path, before() + host + stall(*STARVED)))

    assert state(free=0.2e9, faults=50.0) == STUCK
    assert state(free=0.2e9, faults=0.0) == SLOW
    assert state(free=8e9, faults=50.0) == SLOW, "a file that is mapped into memory"


def test_a_look_at_a_thread_that_is_being_interrupted_tells_nothing(tmp_path: Path) -> None:
    looks = stall(*STARVED)
    interrupted = stall(thread(main=True), cores=1.0)[-1]
    assert state_of(write.read(tmp_path, [*before(), *looks[:-1], interrupted])) == STUCK


def test_a_step_that_ended_after_all_was_only_slow(tmp_path: Path) -> None:
    ended = write.scalars(40.0, STEPS, step_seconds=30.0)
    found, _, verdict = judged(write.read(tmp_path, [*before(), *stall(*STARVED), ended]))
    assert found is not None and (found.state, found.went_on) == (SLOW, True)
    assert "no step finished for 30.0 s" in found.sentence
    assert verdict.status != "stuck"


@pytest.mark.parametrize(("ended_s", "state"), [(40.1, STUCK), (60.0, SLOW)])
def test_a_step_that_ends_as_all_processes_are_ended_has_not_gone_on_by_itself(
    ended_s: float, state: str, tmp_path: Path
) -> None:
    """Whoever ends a job ends its children, too, for which this one may have waited."""
    ended = write.scalars(40.0, STEPS, step_seconds=30.0)
    end = write.record("end", ended_s, reason="sigterm")
    assert state_of(write.read(tmp_path, [*before(), *stall(*STARVED), ended, end])) == state


def test_threads_that_move_are_not_stuck(tmp_path: Path) -> None:
    one = stall(*STARVED)
    other = stall(MAIN_WAITS, thread(*QUEUE, "/home/me/data.py:19 batches", *GENERATOR[1:]))
    turns = [pair[n % 2] for n, pair in enumerate(zip(one, other, strict=True))]
    assert state_of(write.read(tmp_path, before() + turns)) == UNSURE


def test_a_few_seconds_are_not_enough(tmp_path: Path) -> None:
    looks = stall(*STARVED, dumped=False, seconds=12)
    assert state_of(write.read(tmp_path, before() + looks)) == UNSURE


def test_ctrl_c_after_a_long_wait_leaves_the_run_stuck_and_an_error_ends_it(tmp_path: Path) -> None:
    looks = stall(thread(*QUEUE, *IN_A_CALLBACK, main=True))

    def ended_by(error: str) -> EventLog:
        dump = write.record(
            "dump", 33.0, reason="exception", step=STEPS, idle_s=0.0, phase="train_batch",
            error={"type": error, "text": "gone\n and more", "frames": list(IN_A_CALLBACK)},
        )  # fmt: skip
        end = write.record("end", 34.0, reason="exception")
        return write.read(tmp_path, [*before(), *looks, dump, end])

    assert judged(ended_by("KeyboardInterrupt"))[2].status == "stuck"
    verdict = judged(ended_by("ValueError"))[2]
    assert verdict.status == "dead"
    assert "it failed at train.py:41 with ValueError: gone." in verdict.sentence


def test_of_an_error_of_tensorflow_the_line_that_matters_is_said(tmp_path: Path) -> None:
    text = (
        "Graph execution error:\n\nDetected at node Gather defined at (most recent call last):\n"
        "<stack traces unavailable>\nindices[3] = 9 is not in [0, 5)\n\t [[{{node Gather}}]]"
    )
    error = {"type": "InvalidArgumentError", "text": text, "frames": list(IN_A_CALLBACK)}
    dump = write.record(
        "dump", 33.0, reason="exception", step=STEPS, idle_s=0.0, phase="train_batch", error=error
    )
    end = write.record("end", 34.0, reason="exception")
    sentence = judged(write.read(tmp_path, [*before(), dump, end]))[2].sentence
    assert (
        "failed at train.py:41 with InvalidArgumentError: indices[3] = 9 is not in [0, 5)."
        in sentence
    )


def test_an_error_of_the_input_is_told_with_its_op_and_its_line(tmp_path: Path) -> None:
    text = (
        "Graph execution error:\n\nDetected at node IteratorGetNext defined at (most recent call "
        'last):\n  File "/home/me/train.py", line 88, in <module>\n\n'
        f'  File "{SITE}/keras/src/trainer.py", line 9, in fit\n\nno such file\n'
        "\t [[{{node IteratorGetNext}}]] [Op:__inference_f]"
    )
    error = {"type": "NotFoundError", "text": text, "frames": list(IN_THE_STEP), "uncaught": True}
    dump = write.record(
        "dump", 33.0, reason="exception", step=STEPS, idle_s=0.0, phase="train_batch", error=error
    )
    end = write.record("end", 34.0, reason="exception")
    _, finding, verdict = judged(write.read(tmp_path, [*before(), dump, end]))
    assert (verdict.status, verdict.primary) == ("dead", "input")
    assert "it failed at train.py:88 with NotFoundError: no such file" in verdict.sentence
    assert finding is not None
    assert "in the op IteratorGetNext, defined at train.py:88" in finding.explanation
    assert (finding.severity, finding.fatal) == ("act", True)
    assert finding.change.text.startswith("Fix what failed at train.py:88. It is part of the input")


def test_a_program_that_failed_and_does_not_exit_is_dead(tmp_path: Path) -> None:
    error = {"type": "ValueError", "text": "bad", "frames": list(IN_A_CALLBACK), "uncaught": True}
    dump = write.record(
        "dump", 9.9, reason="exception", step=STEPS, idle_s=0.0, phase="train_batch", error=error
    )
    exiting = thread(f"{write.LIBRARY}/threading.py:1583 _shutdown", main=True, wait="futex")
    keeps = thread(*QUEUE, name="uploader", wait="futex", keeps_alive=True)
    looks = stall(exiting, keeps, phase="idle")
    verdict = judged(write.read(tmp_path, [*before(), dump, *looks]))[2]
    assert verdict.status == "dead"
    assert "ValueError: bad" in verdict.sentence and "does not exit" in verdict.sentence


def test_a_process_that_hangs_in_its_exit_handlers_is_stuck_unless_it_ended(tmp_path: Path) -> None:
    in_a_handler = thread(
        f"{write.LIBRARY}/threading.py:1119 Thread.join",
        f"{write.LIBRARY}/multiprocessing/queues.py:199 Queue._finalize_join",
        f"{write.LIBRARY}/multiprocessing/util.py:334 _exit_function",
        main=True, wait="futex",
    )  # fmt: skip
    end = write.record("end", LAST_STEP_S, reason="exit")
    looks = [end, *stall(in_a_handler, phase="exit")]
    verdict = judged(write.read(tmp_path, [*before(), *looks]))[2]
    assert (verdict.status, verdict.primary) == ("stuck", "host")
    assert "does not exit: its exit handler is waiting in multiprocessing" in verdict.sentence
    ended = write.record("end", 100.0, reason="exit")
    assert judged(write.read(tmp_path, [*before(), *looks, ended]))[0] is None


def test_before_the_first_step(tmp_path: Path) -> None:
    looks = stall(
        thread(*QUEUE, "/home/me/train.py:7 load", "/home/me/train.py:80 <module>", main=True),
        phase="startup",
        steps=0,
    )
    verdict = judged(write.read(tmp_path, before(steps=0) + looks))[2]
    assert (verdict.status, verdict.primary) == ("stuck", "host")
    said = "(before the first step): the training script at train.py:7 is waiting"
    assert said in verdict.sentence


def test_inside_tensorflow_without_python_it_is_most_likely_the_input(tmp_path: Path) -> None:
    def found(has_pipeline: bool, *devices: str) -> Stall | None:
        log = write.read(tmp_path, before(devices=list(devices)) + stall(MAIN_WAITS))
        return stall_of_run(log.captures, has_pipeline)

    likely = found(True, "CPU:0")
    assert likely is not None and (likely.state, likely.bucket) == (STUCK, "input")
    assert likely.blamed is not None and likely.blamed.confidence <= 0.6
    without_pipeline, with_gpu = found(False, "CPU:0"), found(True, "CPU:0", "GPU:0")
    assert without_pipeline is not None and without_pipeline.state == UNSURE
    assert with_gpu is not None and with_gpu.state == UNSURE, "a GPU that hangs looks the same"


@pytest.mark.parametrize(("each", "state"), [(0, STUCK), (3, None)])
def test_a_graph_that_waits_for_a_queue_outside_of_fit_is_stuck_unless_it_gets_a_core(
    tmp_path: Path, each: int, state: str | None
) -> None:
    wait = {"op": "QueueDequeueV2", "where": "/home/me/train.py:25 train_step"}
    work = write.record("work", LAST_STEP_S + 15.0, waits=[wait])
    main = functools.partial(thread, *IN_THE_STEP, main=True, wait="futex")
    looks = stall(lambda idle: main(turns=idle * each), phase="startup")
    found, _, verdict = judged(write.read(tmp_path, [write.start(), work, *looks]))
    assert (found.state if found is not None else None) == state
    if state is not None:
        assert "in QueueDequeueV2 at train.py:25" in verdict.sentence
        assert verdict.primary == "input"


@pytest.mark.parametrize(("gave", "state"), [(0, STUCK), (9, UNSURE)])
def test_a_step_that_waits_for_the_data_service_is_stuck_if_nothing_comes(
    tmp_path: Path, gave: int, state: str
) -> None:
    def work(at_s: float, gave: int) -> bytes:
        counts = [{"id": 2, "name": "DataService", "gave": gave, "buffered": 0}]
        stages = [{"name": "DataServiceDatasetV2"}]
        return write.record("work", LAST_STEP_S + at_s, stages=stages, counts=counts)

    works = [work(12.5, 0), work(14.5, gave)]
    found = judged(write.read(tmp_path, [*before(), *works, *stall(MAIN_WAITS)]))[0]
    assert found is not None and found.state == state
    if state == STUCK:
        assert found.bucket == "input" and "tf.data service" in found.sentence


def test_a_callback_that_predicts_is_the_callback_and_no_input(tmp_path: Path) -> None:
    predicts = f"{SITE}/keras/src/trainers/data_adapters/array_data_adapter.py:77 get_tf_dataset"
    looks = stall(thread(predicts, *IN_A_CALLBACK, main=True), cores=1.0, phase="epoch_end")
    found = judged(write.read(tmp_path, before() + looks))[0]
    assert found is not None and (found.state, found.bucket) == (SLOW, "host")


def test_a_thread_that_spins_is_named_by_who_waits_for_it(tmp_path: Path) -> None:
    join = f"{write.LIBRARY}/threading.py:1119 Thread.join"
    loop = {"word": "while", "line": 4, "last": 5, "is_empty": True}
    spins = functools.partial(thread, "/home/me/train.py:5 prefetch", name="Thread-1", loop=loop)
    looks = stall(
        thread(join, *IN_A_CALLBACK, main=True, wait="futex"),
        lambda idle: spins(ran_ns=idle * NS),
        cores=1.0, phase="epoch_end",
    )  # fmt: skip
    found, _, verdict = judged(write.read(tmp_path, before() + looks))
    assert found is not None and found.state == ENDLESS
    said = "train.py:41 is waiting for the thread at train.py:5, which is in a while"
    assert said in verdict.sentence


def test_a_batch_that_is_fetched_outside_of_a_graph(tmp_path: Path) -> None:
    """The eager op names itself, in TensorFlow 2.21 as in 2.15."""
    fetch = thread(
        f"{SITE}/tensorflow/python/ops/gen_data_flow_ops.py:3832 queue_dequeue_v2",
        f"{SITE}/tensorflow/python/ops/data_flow_ops.py:471 QueueBase.dequeue",
        "/home/me/train.py:30 main",
        main=True,
    )
    verdict = judged(write.read(tmp_path, before() + stall(fetch)))[2]
    assert (verdict.status, verdict.primary) == ("stuck", "input")
    assert "the training script at train.py:30 is waiting for its next batch" in verdict.sentence


# ---------------------------------------------------------------- clusters


def worker(index: int, *records: bytes, steps: int = STEPS) -> list[bytes]:
    return [*before(steps, task={"type": "worker", "index": index}, workers=2, pid=index), *records]


JOINING = (
    f"{SITE}/tensorflow/python/eager/context.py:600 Context.ensure_initialized",
    f"{SITE}/tensorflow/python/distribute/collective_all_reduce_strategy.py:500 _initialize",
    "/home/me/train.py:9 <module>",
)


def test_a_peer_that_never_came_is_named(tmp_path: Path) -> None:
    looks = stall(thread(*JOINING, main=True), phase="startup", steps=0)
    verdict = judged(write.read(tmp_path, worker(0, *looks, steps=0)))[2]
    assert (verdict.status, verdict.primary) == ("stuck", "communication")
    assert "worker 0 is waiting for worker 1, which has left no record here" in verdict.sentence


def test_one_look_is_enough_where_tensorflow_waits_for_the_cluster(tmp_path: Path) -> None:
    verdict = judged(write.read(tmp_path, worker(0, held(*JOINING), steps=0)))[2]
    assert (verdict.status, verdict.primary) == ("stuck", "communication")


def test_native_code_that_holds_the_interpreter_may_compute(tmp_path: Path) -> None:
    """Without a cluster, nothing says that it waits."""
    assert state_of(write.read(tmp_path, [*before(0), held(*IN_THE_STEP)])) == UNSURE


def test_a_regular_expression_that_a_signal_interrupts_is_as_endless_as_before(
    tmp_path: Path,
) -> None:
    frames = (f"{write.LIBRARY}/re/__init__.py:166 match", "/home/me/train.py:3 clean")
    after = stall(thread(*frames, main=True), cores=1.0, dumped=False)[-1]
    assert state_of(write.read(tmp_path, [*before(0), held(*frames), after])) == ENDLESS


def test_what_is_held_need_not_know_of_the_last_steps(tmp_path: Path) -> None:
    frames = f"{write.LIBRARY}/re/__init__.py:166 match", *IN_A_CALLBACK
    interrupted = write.record(
        "dump", LAST_STEP_S + 20, reason="sigint", step=STEPS, idle_s=20.0, cpu_s=3.0,
        phase="between_batches", threads=[thread(main=True)], native=[],
    )  # fmt: skip
    records = [*before(), held(*frames, steps=STEPS - 20), interrupted]
    assert state_of(write.read(tmp_path, records)) == ENDLESS


def test_a_peer_that_stopped_half_way_is_named(tmp_path: Path) -> None:
    verdict = judged(write.read(tmp_path, worker(0, *stall(MAIN_WAITS)), worker(1)))[2]
    assert (verdict.status, verdict.primary) == ("stuck", "communication")
    assert "worker 0 is waiting for worker 1, which was last heard from at" in verdict.sentence


def test_the_worker_that_is_stuck_on_its_own_is_the_reason(tmp_path: Path) -> None:
    log = write.read(
        tmp_path,
        worker(0, *stall(MAIN_WAITS)),
        worker(1, *stall(*STARVED)),
    )
    verdict = judged(log)[2]
    assert (verdict.status, verdict.primary) == ("stuck", "input")
    assert "the generator at data.py:12 of worker 1 is waiting" in verdict.sentence


def test_a_worker_that_polls_waits_for_those_that_wait_for_it(tmp_path: Path) -> None:
    loop = {"word": "while", "line": 77, "last": 78}
    polls = functools.partial(
        thread, "/home/me/train.py:78 <module>", main=True, wait="clock_nanosleep", loop=loop
    )
    log = write.read(
        tmp_path,
        worker(0, *stall(MAIN_WAITS)),
        worker(1, *stall(lambda idle: polls(turns=2 * idle))),
    )
    verdict = judged(log)[2]
    assert verdict.primary == "communication"
    assert "worker 0 is waiting for worker 1, which is at train.py:78" in verdict.sentence


def test_a_worker_that_waits_for_one_that_is_at_work_is_slow(tmp_path: Path) -> None:
    """The other one may still be tracing: nobody is stuck."""
    busy = stall(thread(*IN_THE_STEP, main=True), cores=0.9)
    found = judged(write.read(tmp_path, worker(0, *stall(MAIN_WAITS)), worker(1, *busy)))[0]
    assert found is not None and found.state == SLOW
    assert found.why == "worker 1 was at work"


def test_a_worker_that_fell_silent_needs_no_second_look(tmp_path: Path) -> None:
    """TensorFlow notices after ten seconds by itself; a job may be ended before that."""
    dump = write.record(
        "dump", LAST_STEP_S + 2.5, reason="no_step", step=STEPS, idle_s=2.5, limit_s=2.0,
        phase="train_batch", cpu_s=3.0, threads=[MAIN_WAITS], native=list(WAITING),
    )  # fmt: skip
    cpu = [write.scalars(LAST_STEP_S + n, STEPS, host__cpu_seconds=3.0) for n in range(1, 7)]
    verdict = judged(write.read(tmp_path, worker(0, dump, *cpu), worker(1)))[2]
    assert (verdict.status, verdict.primary) == ("stuck", "communication")


def test_a_worker_that_fails_because_of_another(tmp_path: Path) -> None:
    text = "{{function_node f}} Collective ops is aborted by: task 1 is unhealthy:\nmore"
    error = {"type": "UnavailableError", "text": text, "frames": list(IN_THE_STEP)}
    dump = write.record(
        "dump", 20.0, reason="exception", step=STEPS, idle_s=9.0, phase="train_batch", error=error
    )
    ended = [dump, write.mark("fit_end", 20.1), write.record("end", 20.2, reason="exception")]
    verdict = judged(write.read(tmp_path, worker(0, *ended)))[2]
    assert (verdict.status, verdict.primary) == ("dead", "communication")
    assert "UnavailableError: Collective ops is aborted by: task 1 is unhealthy" in verdict.sentence


# ---------------------------------------------------------------- dead


def test_a_process_that_was_killed_while_it_trained(tmp_path: Path) -> None:
    log = write.read(tmp_path, before())
    killed = judged(log)[2]
    assert killed.status == "dead"
    assert "(after 37 steps): the process was killed" in killed.sentence
    fresh = replace(log, read_ns=write.START_NS + 11 * NS)
    assert judged(fresh)[2].status != "dead", "it may still run"
    assert judged(fresh)[1] is None


def test_a_process_that_was_killed_with_its_memory_full(tmp_path: Path) -> None:
    full = write.scalars(9.5, STEPS, host__rss_bytes=15.8e9, host__limit_bytes=16e9)
    verdict = judged(write.read(tmp_path, [*before(), full]))[2]
    assert (verdict.status, verdict.primary) == ("dead", "memory")


def test_a_process_that_was_told_to_end(tmp_path: Path) -> None:
    end = write.record("end", 11.0, reason="sigterm")
    _, finding, verdict = judged(write.read(tmp_path, [*before(), end]))
    assert verdict.status == "dead" and "SIGTERM" in verdict.sentence
    assert finding is not None and "not stuck" in finding.explanation


def test_a_first_epoch_that_was_finished_is_judged_as_ever(tmp_path: Path) -> None:
    over = [write.mark("epoch_end", 10.5), write.mark("epoch_begin", 10.6, epoch=1)]
    _, finding, verdict = judged(write.read(tmp_path, [*before(), *over]))
    assert verdict.status == "unknown"
    assert finding is not None and finding.severity == "note"


def test_in_the_ledger_the_time_without_a_step_is_what_was_waited_for(tmp_path: Path) -> None:
    """No clock can time a wait that does not end: according to the books, the step was running."""
    books = {
        "began_ns": write.START_NS + NS, "phase": "train", "epoch": 0, "items": [], "is_open": True,
        "lasted_ns": [28 * NS], "steps": [STEPS], "calls": [STEPS], "spent_ns": {"step": [28 * NS]},
    }  # fmt: skip
    looks = [*stall(*STARVED), write.record("books", 29.0, **books)]
    report = diagnosed(align([], write.read(tmp_path, before() + looks)))
    assert report.verdict.primary == "input"
    assert report.ledger.buckets_ps["input"] == 19 * 10**12, "since the last step"
    assert sum(report.ledger.buckets_ps.values()) == report.timeline.window.duration_ps
