"""A Python generator or PyDataset produces batches more slowly than the step uses them.

What it finds
`Dataset.from_generator`, a generator given to `fit`, or a `keras.utils.PyDataset` (`Sequence`)
whose Python code takes longer than a step, so that it cannot be hidden behind one.

Why it stalls
A generator makes one element after another on one thread, under the interpreter's lock. With one
worker, Keras asks a PyDataset for one batch at a time.

How it is measured
While the step waits for its batch, the wait is blamed on the innermost pipeline stage that is
running. That stage is the Generator.

Example
A PyDataset takes 30 ms to read and scale a batch of 64 images; the step itself needs 4 ms, so it
waits 26 ms.

What to do
Ideally, describe the data to tf.data (files, arrays, records) and do the work in `map` with
TensorFlow ops. For a PyDataset, use more `workers`, with `use_multiprocessing=True` if the work is
pure Python, but no more than the cores that training leaves free. Changing a generator of single
rows to yield whole batches saves only the calls between Python and TensorFlow.

Blind spots
The trace shows the same kind of stage for a generator and a PyDataset, so both remedies are given.
What the Python code does is not visible without the Python tracer.
"""

from __future__ import annotations

from stall_analyzer.detectors.input.blamed_stage import BlamedStage, blamed_stage
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.input.culprit import GENERATOR, elements_per_batch
from stall_analyzer.signals.input.input_pipeline import GENERATOR_ALONE
from stall_analyzer.signals.signals import Signals

ID = "ST002"
BUCKET = "input"

# More workers than this are rarely worth their memory.
MOST_WORKERS = 4
_PROCESSES = "MyData(paths, workers={}, use_multiprocessing=True)"
# Native ops do a generator's work several times as fast, and at best it vanishes behind the step.
# More workers of a PyDataset are threads that share the interpreter's lock, or processes that share
# the cores and send their batches through pipes: for pure Python they save little.
LEAST_TIMES = 4
LEAST_TIMES_WORKERS = 1.2
MOST_TIMES = 50
# From here on a generator yields rows rather than batches.
ROWS_PER_BATCH = 2


def check(signals: Signals) -> Finding | None:
    blamed = blamed_stage(signals, GENERATOR)
    if blamed is None:
        return None
    rows = elements_per_batch(signals.pipeline, blamed.stage)
    each = ""
    if rows >= ROWS_PER_BATCH:
        each = (
            f" For each batch, TensorFlow calls it {rows:.0f} times. Yielding whole batches would "
            f"save these calls, but not the generator's own work."
        )
    workers = _workers(signals.pipeline.cores)
    more = (
        f"For a PyDataset, use {workers} worker processes. Otherwise, read"
        if workers > 1
        else "Read"
    )
    processes = f"{_PROCESSES.format(workers)}\n# or\n" if workers > 1 else ""
    return blamed.finding(
        title=f"The Python generator takes {blamed.per_batch} to make a batch",
        explanation=(
            f"{blamed.opening(f'the generator ({blamed.stage.label})')}. It makes one element "
            f"after another, in Python, on one thread.{each}"
        ),
        change=Change(
            f"{more} files or arrays with tf.data and do the work in map with TensorFlow ops.",
            before="MyData(paths)  # or tf.data.Dataset.from_generator(read, ...)",
            after=f"{processes}tf.data.Dataset.from_tensor_slices(paths)"
            ".map(load, num_parallel_calls=tf.data.AUTOTUNE).batch(n)",
        ),
        gain=blamed.if_faster(_least_times(signals, blamed, rows), MOST_TIMES),
        sureness=0.95,
    )


def _workers(cores: int | None) -> int:
    """Processes that can run at once next to the training."""
    return MOST_WORKERS if cores is None else max(min(cores - 1, MOST_WORKERS), 1)


def _least_times(signals: Signals, blamed: BlamedStage, rows: float) -> float:
    """The least speedup. Keras reads a PyDataset through a generator and no other stage."""
    around = signals.pipeline.around(blamed.stage)
    may_be_pydataset = rows < ROWS_PER_BATCH and all(s.kind in GENERATOR_ALONE for s in around)
    return LEAST_TIMES_WORKERS if may_be_pydataset else LEAST_TIMES
