"""Input in the background takes the cores that the step needs.

What it finds
Steps that are slow because the cores they need are busy preparing the next batches, even if every
batch is on time.

Why it stalls
On a CPU, native input ops share all cores with training: the cores that the step computes on, and
the one that launches the step's ops and runs its Python code. Even if training never waits for a
batch, each step takes longer than it would if no batches were being prepared.

How it is measured
This is an estimate. While training and input together need more cores than there are, the step is
assumed to lose the core time that the pipeline's threads take. The time that the training thread
spends between the ops is compared with the fastest tenth of the same run's steps (ARCHITECTURE.md,
`input.contention`).

Example
Two threads decode JPEGs for a convolutional network on two cores: the step takes 1.6 times as long.

What to do
Make input cheaper rather than more parallel: cache after the expensive map if the result fits in
memory, store data in the form the model needs, decode fewer pixels. Fewer threads for input
(`threading.private_threadpool_size`) help if input is far ahead of the step.

Blind spots
The estimate is a model of the scheduler, not a measurement, and says nothing about runs on a GPU.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch
from stall_analyzer.detectors.input.cache_place import cache_call
from stall_analyzer.detectors.input.faster_input import BESIDE_INPUT, faster_beside_input
from stall_analyzer.detectors.input.stage_code import PARALLEL, cached_code, is_stored
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding, Gain
from stall_analyzer.signals.input.culprit import DECODE_OPS, is_map, op_share
from stall_analyzer.signals.input.input_pipeline import Stage
from stall_analyzer.signals.signals import Signals

ID = "ST010"
BUCKET = "input"

LEAST_SHARE = 0.1  # it is an estimate: a smaller share may be nothing but error
# Fewer threads save some of it; only input that needs no work at all saves all of it.
LEAST_SAVED = 0.5
_FEWER_THREADS = (
    "options = tf.data.Options()\noptions.threading.private_threadpool_size = 1\n"
    "ds = ds.with_options(options)"
)
# From here on, the kind of work is worth naming.
MOSTLY = 0.5


def check(signals: Signals) -> Finding | None:
    lost = signals.causes_ps["input.contention"]
    once_ps = None if signals.comes_again("input.contention") else lost
    certain = round(LEAST_SAVED * lost)
    severity = severity_of(signals.share(certain), once_ps)
    if severity is None or signals.share(lost) < LEAST_SHARE:
        return None
    pipeline = signals.pipeline
    maps = [stage for stage in pipeline.stages if is_map(stage)]
    where = f" ({maps[0].label})" if maps else ""
    most = faster_beside_input(signals, in_python=False).high_ps
    in_time = severity_of(signals.share(signals.causes_ps["input.wait"])) is None
    gain = Gain(certain, most)
    return Finding(
        severity=severity,
        title="Input takes cores from the steps",
        explanation=(
            f"{'The batches are on time, but preparing' if in_time else 'Preparing batches'}"
            f"{' them' if in_time else ''}{where} takes up cores that the steps need, so each "
            "step takes longer. How much longer can only be estimated."
            + (" More parallel calls would make it worse." if in_time else "")
        ),
        change=_change(signals, maps[0] if maps else None, in_time),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals) if once_ps is None else Gain(),
        confidence=0.6,
        blames=BESIDE_INPUT,
        evidence=signals.evidence_of("input.contention", "shares its cores with input"),
    )


def _change(signals: Signals, stage: Stage | None, in_time: bool) -> Change:
    """A cache where there is none yet. Fewer threads, unless training already waits for them."""
    pipeline = signals.pipeline
    decoding = op_share(pipeline, *DECODE_OPS) >= MOSTLY
    ways = ["store the images at the size the model uses"] if decoding else []
    ways += ["give input fewer threads"] if in_time else []
    if stage is None or is_stored(pipeline, stage):
        text = ", or ".join(ways or ["do less work in the pipeline"])
        return Change(f"Make input cheaper: {text}.", "", _FEWER_THREADS if in_time else "")
    cache, turns = cache_call(signals)
    before, after = cached_code(pipeline, stage, cache)
    text = ", or ".join(["cache the result of the expensive map if there is room for it", *ways])
    fewer = after.replace(PARALLEL, "num_parallel_calls=1") if in_time else after
    after = f"{fewer}.prefetch(tf.data.AUTOTUNE)"
    return Change(f"Make input cheaper: {text}.", before, after, turns=turns)
