"""What TensorFlow is doing, as the capture sees it from another thread."""

from __future__ import annotations

import threading
from typing import Any

import tensorflow as tf

from stall_analyzer.captures.look_records import WorkRecord
from tb_stall_plugin.capture.training import work_under_way
from tb_stall_plugin.capture.training.work_under_way import held_by_libraries, look_at_work, work_at
from tests.patience import PATIENCE_S, happens


def seen_while_waiting(dataset: Any, go_on: threading.Event) -> list[WorkRecord]:
    """The main thread asks for an element, which comes after the wait for it has been seen."""
    seen: list[WorkRecord] = []

    def look() -> None:
        def has_counts() -> bool:
            work = work_at(held_by_libraries())
            return work is not None and bool(work.counts)

        happens(has_counts)
        look_at_work(seen.append)
        go_on.set()

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    next(iter(dataset))
    looking.join(PATIENCE_S)
    return seen


def test_the_stages_of_the_input_are_recorded_with_lines_sizes_and_counts() -> None:
    go_on = threading.Event()

    def wait_at_seven(n: Any) -> Any:
        if int(n) == 7:
            go_on.wait(PATIENCE_S)
        return n

    def is_seven(n: Any) -> Any:
        return tf.equal(tf.py_function(wait_at_seven, [n], tf.int64), 7)

    seen = seen_while_waiting(tf.data.Dataset.range(8).repeat().filter(is_seven), go_on)
    assert len(seen) > 1
    stages = {stage.name: stage for stage in seen[-1].stages}
    assert [stage.name for stage in seen[-1].stages] == ["Filter", "Repeat", "Range"]
    assert f"test_work_under_way.py:{is_seven.__code__.co_firstlineno}" in stages["Filter"].where
    assert (stages["Repeat"].size, stages["Range"].size) == (-1, 8)
    gave = {count.name: count.gave for count in seen[-1].counts}
    assert gave["Filter"] == 0 and gave["ForeverRepeat"] == 8


def test_ops_that_wait_are_recorded_with_their_lines() -> None:
    queue = tf.queue.FIFOQueue(2, [tf.float32])

    @tf.function
    def step() -> Any:
        return queue.dequeue() * 2.0

    waits = work_under_way._waiting_ops(step.get_concrete_function().graph)
    assert [wait.op for wait in waits] == ["QueueDequeueV2"]
    assert "test_work_under_way.py" in waits[0].where


def test_nothing_is_recorded_if_the_main_thread_is_not_in_tensorflow() -> None:
    assert work_at(held_by_libraries()) is None


def test_loops_of_a_graph_are_recorded_unless_they_count_their_rounds() -> None:
    @tf.function
    def halved(x: Any) -> Any:
        return tf.while_loop(lambda y: tf.reduce_sum(y) > 1.0, lambda y: (y / 2.0,), (x,))[0]

    @tf.function
    def counted(x: Any) -> Any:
        for _ in tf.range(3):
            x = x / 2.0
        return x

    x = tf.ones((2,))
    loops = [
        work_under_way._endless_loops(f.get_concrete_function(x).graph, of_input=False)
        for f in (halved, counted)
    ]
    assert "test_work_under_way.py" in loops[0][0].where
    assert loops[1] == ()


def test_a_function_that_xla_compiles_is_recognized_alone_and_inside_another() -> None:
    @tf.function(jit_compile=True)
    def compiled(x: Any) -> Any:
        return x + 1.0

    @tf.function
    def around(x: Any) -> Any:
        return compiled(x)

    @tf.function
    def plain(x: Any) -> Any:
        return x + 1.0

    x = tf.ones((2,))
    called = [f.get_concrete_function(x) for f in (compiled, around, plain)]
    said = [work_under_way._is_for_xla(f._inference_function, f.graph) for f in called]
    assert said == [True, True, False]
