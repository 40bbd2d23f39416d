"""Memory in use grows with every step: something keeps tensors that are never freed.

What it finds
An allocator whose use between steps, when the temporaries of the step are gone, grows through the
whole epoch.

Why it stalls
It stalls in the end: when the pool is full, steps wait for memory and then fail, often after hours.

How it is measured
The least that is in use between each training step and the next. It must grow in nearly every step,
by a good part of what is in use, and never fall back.

Example
A callback appended an output of the model to a list: 4.2 MB a step, 252 MB after 60 steps.

What to do
Keep numbers, not tensors: `float(loss)`, `.numpy()` of what is small. In a custom loop look for
lists of losses, gradients or outputs, and for a persistent GradientTape.

Blind spots
Memory of Python and NumPy is not TensorFlow's and is not seen. On a CPU without
TF_CPU_ALLOCATOR_USE_BFC only blocks of 256 kB and more are counted. A `cache()` that fills grows
too, on purpose, so runs with one are left alone.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.answers import Change, Finding
from stall_analyzer.format import seconds, size
from stall_analyzer.model import Int64s
from stall_analyzer.signals import Signals
from stall_analyzer.signals.allocator import AllocatorSignals

ID = "ST204"
NAME = "memory_grows"
BUCKET = "memory"

# The first steps make variables, slots and buffers.
SETTLED_AFTER = 5
STEPS_LEAST = 15
# A leak shows in nearly every step; a buffer that fills or an allocator that caches does not.
GROWING_SHARE = 0.8
# Below this nobody runs out of memory in any number of steps that matter.
GROWTH_LEAST_BYTES = 16_000_000


def check(signals: Signals) -> Finding | None:
    leaking = [a for a in signals.allocators if _grows(a.kept_bytes)]
    if not leaking or _fills_a_cache(signals):
        return None
    worst = max(leaking, key=lambda a: int(a.kept_bytes[-1] - a.kept_bytes[SETTLED_AFTER]))
    kept = worst.kept_bytes[SETTLED_AFTER:]
    growth = int(kept[-1] - kept[0])
    per_step = growth // (len(kept) - 1)
    return Finding(
        id=ID,
        name=NAME,
        bucket=BUCKET,
        severity="consider",
        title=f"Memory in use grows by {size(per_step)} with every step",
        explanation=(
            f"Between steps, when their temporaries are gone, {worst.name} held "
            f"{size(int(kept[0]))} after step {SETTLED_AFTER + 1} and {size(int(kept[-1]))} after "
            f"step {len(worst.kept_bytes)}, more after nearly every one. Something keeps a tensor "
            f"of each step.{_until_full(worst, per_step, signals)}"
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
    # What is given back is small against what is kept.
    lasting = int(-change[change < 0].sum()) <= growth // 10
    return steady and lasting and growth >= max(GROWTH_LEAST_BYTES, int(kept[0]) // 4)


def _fills_a_cache(signals: Signals) -> bool:
    """Is a cache of the pipeline written to through the epoch, rather than in its first steps?"""
    pipeline, steps = signals.pipeline, len(signals.training_steps)
    return any(
        below.count >= steps / 2
        for cache in pipeline.of_kind("MemoryCache")
        for below in pipeline.below(cache)
    )


def _until_full(allocator: AllocatorSignals, per_step: int, signals: Signals) -> str:
    if allocator.limit_bytes is None or per_step <= 0:
        return ""
    left = (allocator.limit_bytes - int(allocator.kept_bytes[-1])) // per_step
    steps = signals.training_steps
    usual = int(np.median([s.end_ps - s.start_ps for s in steps])) if steps else 0
    when = f", in about {seconds(left * usual)}" if usual else ""
    return f" The pool of {size(allocator.limit_bytes)} is full after {left} more steps{when}."
