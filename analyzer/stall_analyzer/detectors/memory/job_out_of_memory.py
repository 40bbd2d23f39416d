"""The job ended because memory was used up.

What it finds
Runs that died of memory, of the device or of the host, by the words of their console.

Why it stalls
Nothing is trained after it. The event files of such a run just end, mostly before the first epoch
is over.

How it is measured
The last traceback on the console (ResourceExhaustedError, MemoryError), or the words of the kernel,
of Slurm or of Kubernetes (oom-kill, OOMKilled). A console counts only if its times fit the run's
event files, and if no other run could have written it.

Example
ResourceExhaustedError: OOM when allocating tensor with shape[256,512,64,64], at train.py:88, in the
first step.

What to do
For the device: a smaller batch, mixed precision, fewer activations kept. For the host: a smaller
shuffle buffer, cache() into a file, generators instead of arrays.

Blind spots
What was asked for is known only where TensorFlow says it. A bare "Killed" is named as such and not
called memory.
"""

from __future__ import annotations

from stall_analyzer.model.findings import Change, Finding, Turn
from stall_analyzer.signals.signals import Signals

ID = "ST211"
BUCKET = "memory"


_DEVICE = Change(
    "Make the step need less memory: first of all, with a smaller batch.",
    "data = data.batch(size)",
    "data = data.batch(size // 2)",
    turns=(Turn("batch size", "down"),),
)
_HOST = Change("Give the job more memory, or use a smaller shuffle buffer, cache or batch.")


def check(signals: Signals) -> Finding | None:
    end = signals.console.end
    if end is None or not end.out_of_memory:
        return None
    finished = signals.progress is not None and signals.progress.finished
    far = f" It had reached {end.progress.words}." if end.progress is not None else ""
    return Finding(
        severity="consider" if finished else "act",
        title=f"Out of memory: {end.words}",
        explanation=f"The console of the job ends with this ({end.line.place}).{far}",
        change=_DEVICE if "ResourceExhausted" in end.error else _HOST,
        confidence=0.85,
        fatal=not finished,
    )
