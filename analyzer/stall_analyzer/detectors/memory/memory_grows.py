"""Memory in use grows with every step: something is kept and never freed.

What it finds
An allocator whose memory in use between steps, when each step's temporary tensors are gone, grows
throughout the epoch; or, with a capture, a process that grows in the same way.

Why it stalls
It stalls eventually: when the pool is full, steps wait for memory and then fail, often after hours.

How it is measured
The minimum amount in use between each training step and the next. It must grow in nearly every
step, hardly ever fall, and end at least a quarter above where it began. Every second, a capture
samples the resident memory of the process, which includes the memory of Python and NumPy. Samples
from after the first epoch are used, because buffers are no longer filling then; if there are no
later epochs, samples from the second half of the first epoch are used.

Example
A callback appended the model's output to a list: 4.2 MB per step, 252 MB after 60 steps.

What to do
Keep numbers, not tensors: `float(loss)`, or `.numpy()` for small tensors. In a custom loop, look
for lists of losses, gradients or outputs, and for a persistent GradientTape.

If a graph is built nearly every second, it is the graphs that make the process grow: pass numbers
as tensors, and create each tf.function once. If building them also takes a lot of time, the growth
is reported only as retracing (ST104).

Blind spots
Python's and NumPy's own memory is seen only by a capture. On a CPU without
TF_CPU_ALLOCATOR_USE_BFC, only blocks of 256 kB or more are counted. A `cache()` that is being
filled also grows, by design, so runs with such a cache are not reported.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.columns import median
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import counted, seconds, size
from stall_analyzer.model.units import Int64s
from stall_analyzer.signals.memory.allocators import AllocatorSignals
from stall_analyzer.signals.memory.process_growth import ProcessGrowth
from stall_analyzer.signals.signals import Signals

ID = "ST204"
BUCKET = "memory"

# The first steps create variables, slots and buffers.
SETTLED_AFTER = 5
STEPS_LEAST = 15
# A leak shows in nearly every step; a buffer that fills or an allocator that caches does not.
GROWING_SHARE = 0.8
# Below this, memory does not run out in any number of steps that matters.
GROWTH_LEAST_BYTES = 16_000_000

KEEP_NUMBERS = Change(
    "Keep numbers instead of tensors and arrays; look for lists and dictionaries that grow in "
    "callbacks, loops and generators.",
    "self.outputs.append(model.predict(x))",
    "self.scores.append(float(score))",
)
FEWER_GRAPHS = Change(
    "Let one graph serve all calls: pass Python numbers as tensors, give all batches the same "
    "shape, and create each tf.function once, outside the loop.",
    "step(x, 0.5)",
    "step(x, tf.constant(0.5))",
)


def check(signals: Signals) -> Finding | None:
    if _fills_a_cache(signals):
        return None
    leaking = [a for a in signals.allocators if _grows(a.kept_bytes)]
    if not leaking:
        return _of_process(signals)
    worst = max(leaking, key=lambda a: int(a.kept_bytes[-1] - a.kept_bytes[SETTLED_AFTER]))
    kept = worst.kept_bytes[SETTLED_AFTER:]
    growth = int(kept[-1] - kept[0])
    per_step = growth // (len(kept) - 1)
    return Finding(
        severity="consider",
        title=f"Memory in use grows by {size(per_step)} with every step",
        explanation=(
            f"Between steps, when temporary tensors are gone, {worst.name} held "
            f"{size(int(kept[0]))} after step {SETTLED_AFTER + 1} and {size(int(kept[-1]))} after "
            f"step {len(worst.kept_bytes)}, with more after nearly every step. Something keeps a "
            f"tensor from each step.{_until_full(worst, per_step, signals)}"
        ),
        change=Change(
            "Keep numbers instead of tensors; look for lists that grow in callbacks and loops.",
            "self.losses.append(loss)",
            "self.losses.append(float(loss))",
        ),
        confidence=0.8,
    )


def _grows(kept: Int64s) -> bool:
    kept = kept[SETTLED_AFTER:]
    if len(kept) < STEPS_LEAST:
        return False
    change = np.diff(kept)
    growth = int(kept[-1] - kept[0])
    steady = float((change > 0).mean()) >= GROWING_SHARE
    # What is freed is small compared with what is kept.
    lasting = int(-change[change < 0].sum()) <= growth // 10
    return steady and lasting and growth >= max(GROWTH_LEAST_BYTES, int(kept[0]) // 4)


def _of_process(signals: Signals) -> Finding | None:
    """From the resident memory that a capture sampled."""
    growth = signals.process_growth
    if growth is None or (growth.by_graphs and _is_told_as_retracing(signals)):
        return None
    limit = signals.machine.limit_bytes if signals.machine is not None else None
    full = (
        f" At this rate, the limit of {size(limit)} will be reached after "
        f"{counted((limit - growth.to_bytes) // growth.per_step, 'more step')}."
        if limit and growth.per_step and limit > growth.to_bytes
        else ""
    )
    return Finding(
        severity="consider",
        title=f"The process grows by {size(growth.per_step)} with every step",
        explanation=(
            f"It held {size(growth.from_bytes)} after step {growth.first_step:,} and "
            f"{size(growth.to_bytes)} after step {growth.last_step:,}, and grew in nearly every "
            f"second in between. {_what_is_kept(growth)}{full}"
        ),
        change=FEWER_GRAPHS if growth.by_graphs else KEEP_NUMBERS,
        confidence=0.75,
    )


def _is_told_as_retracing(signals: Signals) -> bool:
    """Whether the graphs also take enough time for that finding, which names their cause."""
    return severity_of(signals.share(signals.causes_ps["compile.retracing"])) is not None


def _what_is_kept(growth: ProcessGrowth) -> str:
    if growth.by_graphs:
        return f"In that time, {growth.graphs:,} graphs were built, and every graph is kept."
    return "Something from each step is kept: a tensor, an array or a Python object."


def _fills_a_cache(signals: Signals) -> bool:
    """Is a cache of the pipeline filled throughout the epoch, rather than in its first steps?"""
    pipeline, steps = signals.pipeline, len(signals.training_steps)
    caches = pipeline.of_kind("MemoryCache")
    return any(below.count >= steps / 2 for cache in caches for below in pipeline.below(cache))


def _until_full(allocator: AllocatorSignals, per_step: int, signals: Signals) -> str:
    if allocator.limit_bytes is None or per_step <= 0:
        return ""
    left = (allocator.limit_bytes - int(allocator.kept_bytes[-1])) // per_step
    steps = signals.training_steps
    usual = int(median([s.end_ps - s.start_ps for s in steps])) if steps else 0
    when = f", in about {seconds(left * usual)}" if usual else ""
    pool = size(allocator.limit_bytes)
    return f" The {pool} pool will be full after {counted(left, 'more step')}{when}."
