"""What TensorFlow is doing in a run that hangs: what never ends, and what may yet end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from stall_analyzer.signals.ending.stall import ENDLESS, SLOW, STUCK
from tests import captures as write
from tests.captures import IN_A_CALLBACK, SITE, thread
from tests.detectors.stalls import (
    LAST_STEP_S,
    MAIN_WAITS,
    STEPS,
    Json,
    before,
    judged,
    stall,
    state_of,
)

Chain = Sequence[tuple[str, int]]  # a stage as TensorFlow runs it, and what it has produced
HUNGRY = (("Root", 0), ("Prefetch", 0), ("BatchV2", 0))  # stages that wait for the one below
FILTERED: tuple[Json, ...] = (
    {"name": "Batch", "where": "", "size": -2},
    {"name": "Filter", "where": "/home/me/data.py:5 <lambda>", "size": -2},
    {"name": "Repeat", "where": "", "size": -1},
    {"name": "TensorSlice", "where": "", "size": 6400},
)
CONVERGES: tuple[Json, ...] = ({"where": "/home/me/layers.py:13 call", "of_input": False},)


def work(
    at_s: float, chain: Chain, stages: Sequence[Json] = FILTERED, source: int = 0, **more: object
) -> bytes:
    """`source`: the number of the innermost iterator, which is created again with the data."""
    ids = [*range(1, len(chain)), source or len(chain)]
    counts = [
        {"id": id, "name": name, "gave": gave} for id, (name, gave) in zip(ids, chain, strict=True)
    ]
    fields = {"steps": None, "stages": list(stages), "counts": counts, "loops": [], **more}
    return write.record("work", LAST_STEP_S + at_s, **fields)


def hang(*works: bytes, main: Json = MAIN_WAITS, phase: str = "train_batch") -> list[bytes]:
    return [*before(), *stall(main, cores=1.0, phase=phase), *works]


def through_filter(gave: int, repeated: int, source: int) -> Chain:
    return (*HUNGRY, ("Filter", gave), ("ForeverRepeat", repeated), ("TensorSlice", source))


# ---------------------------------------------------------------- nothing comes through


def test_a_filter_that_drops_all_of_data_that_repeat_is_endless(tmp_path: Path) -> None:
    looks = work(12, through_filter(0, 160_749, 749)), work(13, through_filter(0, 190_322, 4722))
    found, finding, verdict = judged(write.read(tmp_path, hang(*looks)))
    assert found is not None and found.state == ENDLESS
    assert (verdict.status, verdict.primary) == ("stuck", "input")
    assert "the filter at data.py:5 drops everything: none of 190,322" in verdict.sentence
    assert finding is not None and "Wait" not in finding.change.text


def test_a_filter_that_has_not_seen_all_of_its_data_may_yet_let_something_through(
    tmp_path: Path,
) -> None:
    looks = work(12, through_filter(0, 3000, 3000)), work(13, through_filter(0, 4000, 4000))
    found, finding, verdict = judged(write.read(tmp_path, hang(*looks)))
    assert found is not None and (found.state, found.bucket) == (SLOW, "input")
    assert "the filter at data.py:5 has let none of 4,000 elements through" in verdict.sentence
    assert finding is not None and "Find out what this stage receives" in finding.change.text


def test_a_filter_that_still_lets_something_through_is_slow(tmp_path: Path) -> None:
    looks = work(12, through_filter(3, 160_749, 749)), work(13, through_filter(4, 190_322, 4722))
    assert state_of(write.read(tmp_path, hang(*looks))) == SLOW


def test_a_filter_that_lets_little_through_is_told(tmp_path: Path) -> None:
    looks = work(12, through_filter(3, 160_749, 749)), work(13, through_filter(4, 190_322, 4722))
    found = judged(write.read(tmp_path, hang(*looks)))[0]
    assert found is not None and found.bucket == "input"
    assert "the filter at data.py:5 lets only 4 of 190,322 elements through" in found.sentence


def test_a_filter_that_became_empty_in_the_middle_of_training_is_endless(tmp_path: Path) -> None:
    looks = work(12, through_filter(99, 160_749, 749)), work(13, through_filter(99, 190_322, 4722))
    verdict = judged(write.read(tmp_path, hang(*looks)))[2]
    assert "none of 29,573 elements came through" in verdict.sentence


def test_where_the_size_is_not_known_new_iterators_tell_that_the_data_began_anew(
    tmp_path: Path,
) -> None:
    files = (*FILTERED[:3], {"name": "TFRecord", "where": "", "size": -2})

    def state(source: int) -> str | None:
        chain = through_filter(0, 190_322, 4722)
        looks = work(12, through_filter(0, 9, 9), files), work(13, chain, files, source=source)
        return state_of(write.read(tmp_path, hang(*looks)))

    assert state(source=31) == ENDLESS
    assert state(source=6) == SLOW, "the first pass is not over"


def test_errors_that_are_ignored_name_the_function_that_fails(tmp_path: Path) -> None:
    stages = (
        {"name": "IgnoreErrors", "where": "", "size": -1},
        {"name": "ParallelMap", "where": "/home/me/data.py:9 decode", "size": -1},
        *FILTERED[2:],
    )
    chains = [
        (*HUNGRY, ("IgnoreErrors", 0), ("ParallelMapV2", 0), ("ForeverRepeat", n), ("Tensor", 7))
        for n in (385_716, 419_354)
    ]
    looks = work(12, chains[0], stages), work(13, chains[1], stages)
    verdict = judged(write.read(tmp_path, hang(*looks)))[2]
    assert "ignore_errors() after the function at data.py:9, which fails" in verdict.sentence


def test_one_look_says_nothing_about_what_moves(tmp_path: Path) -> None:
    assert state_of(write.read(tmp_path, hang(work(12, through_filter(0, 160_749, 749))))) == SLOW


def test_a_shuffle_buffer_that_is_being_filled_is_slow(tmp_path: Path) -> None:
    chains = [(*HUNGRY, ("Shuffle", 0), ("ForeverRepeat", n)) for n in (1_000_000, 1_200_000)]
    found, finding, _ = judged(write.read(tmp_path, hang(work(12, chains[0]), work(13, chains[1]))))
    assert found is not None and (found.state, found.bucket) == (SLOW, "input")
    assert "a shuffle buffer is being filled, with 1,200,000 elements" in found.sentence
    assert finding is not None and "smaller" in finding.change.text


# ---------------------------------------------------------------- data that repeat


@pytest.mark.parametrize("call", ["evaluate", "predict", "adapt", "reduce"])
def test_a_call_that_goes_through_data_that_repeat_is_endless(tmp_path: Path, call: str) -> None:
    main = thread(
        f"{SITE}/tensorflow/python/eager/execute.py:53 quick_execute",
        f"{SITE}/keras/src/backend/tensorflow/trainer.py:500 TensorFlowTrainer.{call}",
        "/home/me/train.py:88 <module>",
        main=True,
    )
    over = [write.mark("epoch_end", 10.0), write.mark("fit_end", 10.0)]
    chain = (("Root", 4679), ("ForeverRepeat", 4936))

    def verdict(steps: int | None) -> tuple[str, str]:
        looks = [work(at, chain, FILTERED[2:], steps=steps) for at in (12, 13)]
        records = [*before(), *over, *stall(main, cores=1.0, phase="idle"), *looks]
        said = judged(write.read(tmp_path, records))[2]
        return said.status, said.sentence

    status, sentence = verdict(None)
    assert status == "stuck"
    assert f"{call}() at train.py:88 goes through data that repeats forever" in sentence
    assert verdict(100)[0] != "stuck"


# ---------------------------------------------------------------- loops of graphs


def in_the_step(*loops: Json) -> tuple[bytes, bytes]:
    def look(at_s: float) -> bytes:
        chain = (("Root", STEPS), ("Prefetch", STEPS))
        ready = [
            {"id": id, "name": name, "gave": gave, "buffered": 1}
            for id, (name, gave) in enumerate(chain)
        ]
        return work(at_s, chain, (), counts=ready, loops=list(loops))

    return look(12), look(13)


def test_a_first_step_that_xla_compiles_is_slow_to_compile(tmp_path: Path) -> None:
    looks = [work(at, (("Root", 1), ("Prefetch", 1)), compiles=True) for at in (12, 13)]
    hangs = [*before(0), *stall(MAIN_WAITS, cores=1.0, steps=0), *looks]
    found, finding, verdict = judged(write.read(tmp_path, hangs))
    assert found is not None and (found.state, found.bucket) == (SLOW, "compile")
    assert "XLA is compiling the step" in verdict.sentence
    assert finding is not None and "batches of the same shape" in finding.change.text


def test_a_step_whose_next_batch_is_ready_computes(tmp_path: Path) -> None:
    found = judged(write.read(tmp_path, hang(*in_the_step())))[0]
    assert found is not None and (found.state, found.bucket) == (SLOW, "compute")


def test_a_loop_of_the_graph_that_may_not_end_is_told_with_its_line(tmp_path: Path) -> None:
    found, finding, _ = judged(write.read(tmp_path, hang(*in_the_step(*CONVERGES))))
    assert found is not None and found.state == SLOW
    assert "(at layers.py:13) that runs until its condition is false" in found.sentence
    assert finding is not None and "maximum_iterations" in finding.change.after


def test_a_step_a_thousand_times_as_long_as_the_others_is_in_a_loop_without_an_end(
    tmp_path: Path,
) -> None:
    quick = [*before(steps=0), write.mark("epoch_begin", 9.8), write.steps(9.8, STEPS, 0.005)]
    looks = [*stall(MAIN_WAITS, cores=1.0), *in_the_step(*CONVERGES)]
    verdict = judged(write.read(tmp_path, [*quick, *looks]))[2]
    assert (verdict.status, verdict.primary) == ("stuck", "compute")
    assert "most likely never ends" in verdict.sentence
    bounded = [*stall(MAIN_WAITS, cores=1.0), *in_the_step()]
    assert state_of(write.read(tmp_path, [*quick, *bounded])) == SLOW


# ---------------------------------------------------------------- Python


def test_a_loop_that_is_unrolled_while_a_function_is_traced_is_told(tmp_path: Path) -> None:
    tracing = thread(
        f"{SITE}/tensorflow/python/framework/ops.py:1078 _create_c_op",
        "/home/me/train.py:30 step",
        f"{SITE}/tensorflow/python/autograph/operators/control_flow.py:993 _py_while_stmt",
        f"{SITE}/tensorflow/python/framework/func_graph.py:1060 func_graph_from_py_func",
        "/home/me/train.py:88 <module>",
        main=True,
    )
    found = judged(write.read(tmp_path, hang(main=tracing)))[0]
    assert found is not None and "unrolling a while loop" in found.sentence


def test_a_function_that_calls_itself_while_it_is_traced_is_told(tmp_path: Path) -> None:
    graph = f"{SITE}/tensorflow/python/framework/func_graph.py:1060 func_graph_from_py_func"
    tracing = thread(*["/home/me/train.py:30 depth", graph] * 4, main=True)
    _, finding, verdict = judged(write.read(tmp_path, hang(main=tracing)))
    assert "keeps calling itself" in verdict.sentence
    assert finding is not None and "recursion" in finding.change.text


def test_of_a_loop_in_python_its_lines_are_told(tmp_path: Path) -> None:
    loop = {"word": "while", "line": 40, "last": 44}
    found = judged(write.read(tmp_path, hang(main=thread(*IN_A_CALLBACK, main=True, loop=loop))))[0]
    assert found is not None and found.state == SLOW
    assert "in a while loop (lines 40 to 44; check what ends it)" in found.sentence


# ---------------------------------------------------------------- sockets


@pytest.mark.parametrize(
    ("frames", "bucket"),
    [
        (("/home/me/train.py:30 allreduce", "/home/me/train.py:37 <module>"), "communication"),
        ((f"{write.LIBRARY}/socket.py:294 socket.accept",
          "/home/me/train.py:9 rendezvous"), "communication"),
        (("/home/me/license.py:4 <module>", "<frozen importlib._bootstrap>:1147 _find_and_load",
          "/home/me/train.py:3 <module>"), "host"),
        ((f"{write.LIBRARY}/socket.py:706 SocketIO.readinto",
          f"{write.LIBRARY}/http/client.py:292 HTTPResponse._read_status",
          "/home/me/train.py:5 download"), "host"),
        (("/home/me/train.py:41 push", *IN_A_CALLBACK[1:]), "host"),
    ],
)  # fmt: skip
def test_whose_socket_it_is_decides_what_the_wait_is(
    tmp_path: Path, frames: tuple[str, ...], bucket: str
) -> None:
    """The script's own waits for a worker, a library's for a server, a callback's for the host."""
    looks = stall(thread(*frames, main=True, wait="recvfrom", on="a socket"))
    found, finding, _ = judged(write.read(tmp_path, before() + looks))
    assert found is not None and (found.state, found.bucket) == (STUCK, bucket)
    assert finding is not None and "TF_CONFIG" not in finding.change.text


@pytest.mark.parametrize(
    ("call", "bucket"), [("268 Condition.wait", "communication"), ("95 Lock.__enter__", "host")]
)
def test_where_processes_meet_is_communication_and_what_they_lock_is_not(
    tmp_path: Path, call: str, bucket: str
) -> None:
    frames = (f"{write.LIBRARY}/multiprocessing/synchronize.py:{call}", "/home/me/train.py:18 run")
    looks = stall(thread(*frames, main=True, wait="futex"))
    found, *_ = judged(write.read(tmp_path, before() + looks))
    assert found is not None and (found.state, found.bucket) == (STUCK, bucket)


# ---------------------------------------------------------------- after the first epoch


def test_a_run_that_was_ended_in_a_long_wait_is_about_that_wait(tmp_path: Path) -> None:
    """However well its first epoch went."""
    over = [write.mark("epoch_end", 5.0), write.mark("epoch_begin", 5.1, epoch=1)]
    end = write.record("end", 31.0, reason="sigterm")
    busy = stall(thread(*IN_A_CALLBACK, main=True), cores=1.0)
    verdict = judged(write.read(tmp_path, [*before(), *over, *busy, end]))[2]
    assert (verdict.status, verdict.primary) == ("dead", "host")
    assert "it was slow, not stuck" in verdict.sentence and "train.py:41" in verdict.sentence
    killed = judged(write.read(tmp_path, [*before(), *over, *busy]))[2]
    assert "it was slow, not stuck" in killed.sentence
