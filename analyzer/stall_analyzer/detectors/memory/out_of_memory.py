"""A step asked for memory, did not get it, and failed.

What it finds
Ops that waited for memory until the allocator gave up, in a call that then failed.

Why it stalls
Before it raises ResourceExhaustedError, the allocator keeps trying for ten seconds. A program that
catches the error and continues (skips the batch, or retries with a smaller one) loses these ten
seconds every time.

How it is measured
An op counts as failed if it ran for more than a second and allocated nothing, and its call ended
without a result. The trace must have allocator events.

Example
Step 6 asked for 300 MB while 224 MB was free, and failed after 10.0 s.

What to do
Make the batch, the images or the sequences smaller. Release memory that is held outside the step.
If only some batches are too large, limit their size in the pipeline rather than catching the error.

Blind spots
How much memory a failing op asked for is not recorded; it is known only if the same op succeeded
before. A program that dies at its first failure leaves no trace at all.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import OFTEN, every_epoch, removed
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding, Gain, Turn
from stall_analyzer.model.format import seconds, size
from stall_analyzer.signals.memory.allocators import MemoryWait
from stall_analyzer.signals.signals import Signals

ID = "ST202"
BUCKET = "memory"


def check(signals: Signals) -> Finding | None:
    lost = signals.causes_ps["memory.out_of_memory"]
    if lost == 0:
        return None
    failures = [wait for wait in signals.memory_waits if wait.failed]
    worst = max(failures, key=lambda wait: wait.end_ps - wait.start_ps)
    gain = removed(lost)
    return Finding(
        severity=severity_of(signals.share(lost)) or "consider",
        title=f"{worst.op} waited {seconds(worst.end_ps - worst.start_ps)} for memory and failed",
        explanation=(
            f"{_asked(worst)} The allocator kept trying and then gave up; the step was lost. "
            f"{_times(len(failures))} cost {signals.with_share(lost)}."
        ),
        change=Change(
            "Make the step need less memory, or free memory that is held elsewhere.",
            "data = data.batch(size)",
            "data = data.batch(size // 2)",
            turns=(Turn("batch size", "down"),),
        ),
        lost_ps=lost,
        gain=gain,
        later_gain=every_epoch(gain, signals) if len(failures) >= OFTEN else Gain(),
        confidence=0.9,
        evidence=signals.evidence_of("memory.out_of_memory", f"{worst.op} cannot get memory"),
    )


def _times(count: int) -> str:
    return "This failure" if count == 1 else f"{count} such failures"


def _asked(wait: MemoryWait) -> str:
    free = "" if wait.available_bytes is None else f" {size(wait.available_bytes)} was free"
    pool = f" in {wait.allocator}" if wait.allocator and free else ""
    if wait.asked_bytes is None:
        what = f":{free}{pool}" if free else ""
        return f"{wait.op} asked for more memory than was available{what}."
    return (
        f"{wait.op} asked for memory ({size(wait.asked_bytes)} in earlier steps)"
        f"{' while' + free + pool if free else ''}."
    )
