"""A map of TensorFlow ops ran one element at a time while training waited for it.

What it finds
A `Dataset.map` (or filter) of native ops that actually ran serially, or with one parallel call, and
held up the step.

Why it stalls
Processing one element after another uses only one core. tf.data usually makes such a map parallel
by itself, with two exceptions: its graph rewrites are turned off, or the function has state (random
ops, variables) and no batch follows directly.

How it is measured
While the step waits for its batch, the wait is blamed on the innermost pipeline stage that is
running. That stage ran as `Map` rather than `ParallelMap`, or with one parallel call, and most of
the time in map functions was not spent in Python.

Example
`ds.batch(32).map(augment)` with `tf.random.uniform` inside: stateful and therefore serial, 20 ms a
batch.

What to do
Use `map(f, num_parallel_calls=tf.data.AUTOTUNE)`. For random ops, `tf.random.stateless_*` with a
seed keeps the results repeatable. `filter` and `scan` cannot run in parallel, but a map can: move
the costly part into a separate map before them.

Blind spots
If the training step itself computes on the same cores, a parallel map takes some of them away; the
predicted saving assumes that at least 40% of the other cores are free.
"""

from __future__ import annotations

from stall_analyzer.detectors.input.blamed_stage import blamed_stage
from stall_analyzer.detectors.input.stage_code import PARALLEL, call_of, is_filter, is_scan
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import percent
from stall_analyzer.signals.input.culprit import DECODE_OPS, SERIAL_MAP, op_share
from stall_analyzer.signals.input.input_pipeline import Stage
from stall_analyzer.signals.signals import Signals

ID = "ST003"
BUCKET = "input"

# Where the trace does not say how many cores there are.
CORES_AT_LEAST = 2
# Of the cores other than the first, at least this share is free for the map.
FREE_CORES = 0.4
# A share of decoding worth mentioning.
MENTION_SHARE = 0.5


def check(signals: Signals) -> Finding | None:
    blamed = blamed_stage(signals, SERIAL_MAP, less_work=False)
    if blamed is None or signals.pipeline.cores == 1:
        return None
    label, cores = blamed.stage.label, signals.pipeline.cores or CORES_AT_LEAST
    decoding = op_share(signals.pipeline, *DECODE_OPS)
    mentions = decoding >= MENTION_SHARE
    where = f"one of {cores} cores" if signals.pipeline.cores else "one core"
    share = percent(decoding, 1)
    mostly = f" Decoding takes {share} of the time in map functions." if mentions else ""
    return blamed.finding(
        title=f"{label} runs serially and takes {blamed.per_batch} a batch",
        explanation=(
            f"{blamed.opening(label)}, one element at a time, on {where}.{mostly} "
            f"{_why_serial(blamed.stage)}"
        ),
        change=_change(blamed.stage, signals.pipeline.works_ahead),
        gain=blamed.if_faster(1 + FREE_CORES * (cores - 1), cores),
        sureness=0.9,
    )


def _why_serial(stage: Stage) -> str:
    if is_filter(stage) or is_scan(stage):
        return f"{call_of(stage, '…')} has no parallel form."
    if stage.parameters.get("parallelism") == 1:
        return "It ran with only one parallel call: num_parallel_calls is probably 1."
    return (
        "tf.data did not make it parallel by itself: either the function has state (random ops, "
        "variables), or tf.data's rewrites are turned off."
    )


def _change(stage: Stage, works_ahead: bool) -> Change:
    behind = "" if works_ahead else ".prefetch(tf.data.AUTOTUNE)"
    before = f"ds.{call_of(stage)}  # {stage.label}"
    if is_filter(stage):
        return Change(
            "Test the elements in a map, which can run in parallel, and filter by the result; or "
            "filter the data once and store what is left.",
            before,
            f"ds.map(lambda *x: (x, f(*x)), {PARALLEL})\\\n"
            f"  .filter(lambda x, keep: keep).map(lambda x, keep: x){behind}",
        )
    if is_scan(stage):
        return Change(
            "Move the work that needs no state into a separate map before the scan; that map can "
            "run in parallel.",
            before,
            f"ds.map(without_state, {PARALLEL}).scan(state, f){behind}",
        )
    return Change(
        "Set num_parallel_calls to tf.data.AUTOTUNE, so that the map runs in parallel.",
        before,
        f"ds.map(f, {PARALLEL}){behind}",
    )
