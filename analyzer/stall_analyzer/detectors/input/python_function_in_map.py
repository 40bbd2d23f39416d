"""A Python function inside `Dataset.map` keeps training waiting.

What it finds
`tf.py_function` or `tf.numpy_function` in a map (or filter) whose Python code takes longer than a
step, so that it cannot be hidden behind one.

Why it stalls
Python runs on one core at a time, however many parallel calls the map has: all of them share the
interpreter's lock with each other and with the training loop. tf.data never makes such a map
parallel by itself, because it cannot know what the function does.

How it is measured
While the step waits for its batch, the wait is blamed on the innermost pipeline stage that is
running. That stage is a map, and most of the time in map functions is spent in PyFunc ops.

Example
`ds.map(lambda x, y: (tf.py_function(augment, [x], tf.float32), y))` at 25 ms a batch, while the
step needs 5 ms: each step waits 20 ms.

What to do
Write the function with TensorFlow ops, so that tf.data can run it on all cores. If it must stay in
Python, run it once and store the result, or, if its time is spent outside the interpreter (files,
network, numpy on large arrays), set `num_parallel_calls` for the map.

Blind spots
Python time includes waiting for the interpreter's lock; what held the lock is not visible. How fast
the same work would be in TensorFlow ops is not known until it is tried, so the predicted saving is
a wide range.
"""

from __future__ import annotations

from stall_analyzer.detectors.input.blamed_stage import BESIDE_SHARE, BlamedStage, blamed_stage
from stall_analyzer.detectors.input.stage_code import call_of, is_filter, is_scan, parallel_call_of
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.input.culprit import PYTHON_FUNCTION, is_serial
from stall_analyzer.signals.signals import Signals

ID = "ST001"
BUCKET = "input"

# Native ops on all cores are faster than Python by at least this much where a rewrite is worth it
# at all; how much more depends on the function, up to its cost vanishing behind the step.
LEAST_TIMES = 4
MOST_TIMES = 50


def check(signals: Signals) -> Finding | None:
    blamed = blamed_stage(signals, PYTHON_FUNCTION)
    if blamed is None:
        return None
    stage = blamed.stage
    result = "tf.bool" if is_filter(stage) else "tf.float32"
    in_python = "f" if is_scan(stage) else f"lambda *x: tf.py_function(f, x, {result})"
    how = (
        "handles one element at a time"
        if is_serial(stage)
        else "runs in parallel calls that share one lock"
    )
    return blamed.finding(
        title=f"The Python function in {stage.label} takes {blamed.per_batch} a batch",
        explanation=(
            f"{blamed.opening(stage.label)}, running a py_function or numpy_function. The "
            f"function {how}: Python uses one core, and tf.data cannot speed it up."
        ),
        change=Change(
            "Write the function with TensorFlow ops and let tf.data run it in parallel. If it "
            "must stay in Python, run it once over the data and store the result. If it waits for "
            "files or a network, set num_parallel_calls for the map, and use more threads than "
            "there are cores (tf.data.Options().threading.private_threadpool_size).",
            before=f"ds.{call_of(stage, in_python)}  # {stage.label}",
            after=f"ds.{parallel_call_of(stage, 'f_in_tensorflow_ops')}",
        ),
        gain=blamed.if_faster(_least_times(blamed), MOST_TIMES),
        sureness=0.95,
    )


def _least_times(blamed: BlamedStage) -> float:
    """A function that takes nothing from training is waiting rather than working: then only
    parallel calls help, and tf.data has one thread per core to make them."""
    works = blamed.locked_out_ps >= BESIDE_SHARE * blamed.waited_ps
    return LEAST_TIMES if works else min(LEAST_TIMES, blamed.signals.pipeline.cores or 1)
