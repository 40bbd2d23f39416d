"""The job ended because memory was used up.

What it finds
Runs that died because the device or the host ran out of memory, according to their console.

Why it stalls
The training is over. The event files of such a run just stop, usually before the first epoch ends.

How it is measured
The last traceback on the console (ResourceExhaustedError, MemoryError), or a message from the
kernel, Slurm or Kubernetes (oom-kill, OOMKilled). A console counts only if its times match the
run's event files and no other run could have written it.

Example
ResourceExhaustedError: OOM when allocating tensor with shape[256,512,64,64], at train.py:88, in the
first step.

What to do
For the device: a smaller batch, mixed precision, fewer stored activations. For the host: a smaller
shuffle buffer, cache() to a file, generators instead of arrays.

Blind spots
The amount of memory requested is known only if TensorFlow reports it. A bare "Killed" is reported
as such, not as a memory problem.
"""

from __future__ import annotations

from stall_analyzer.model.findings import Change, Finding, Turn
from stall_analyzer.signals.signals import Signals

ID = "ST211"
BUCKET = "memory"


_DEVICE = Change(
    "Make the step need less memory, starting with a smaller batch.",
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
    far = f" The run had reached {end.progress.words}." if end.progress is not None else ""
    return Finding(
        severity="consider" if finished else "act",
        title=f"Out of memory: {end.words}",
        explanation=f"The job's console ends with this message ({end.line.place}).{far}",
        change=_DEVICE if "ResourceExhausted" in end.error else _HOST,
        confidence=0.85,
        fatal=not finished,
    )
