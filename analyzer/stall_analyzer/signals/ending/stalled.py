"""A process in which no step finishes any more: is it slow or stuck?

A capture looks at such a process once a second. Stuck is only what was seen to stand still: no core
at work, nothing read, and the thread in question waiting at the same line each time. Whatever
computes, reads or merely sleeps is slow. Of the rest nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from stall_analyzer.align.logged_epoch import STEP_SECONDS
from stall_analyzer.captures.capture_format import HostMetric, StopReason, Tag
from stall_analyzer.captures.capture_records import NS_PER_S, DumpRecord, Look, ThreadStack
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.format import moment, percent, seconds
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.units import PS_PER_NS
from stall_analyzer.signals.ending.blame import (
    COMMUNICATION,
    Blamed,
    Scene,
    blamed,
    is_called_by_tensorflow,
    silent_workers,
)
from stall_analyzer.signals.ending.python_stacks import stack_of

STUCK, SLOW, UNSURE = "stuck", "slow", "unsure"

# Less of a core than this is the capture itself, and threads that look around now and then.
IDLE_CORES = 0.02
# A process that reads this much in each half of the time is reading.
READING_BYTES = 100_000
# So many looks in which the thread stands at the same line, over so many seconds.
LEAST_LOOKS = 3
LEAST_SECONDS = 3.0
# Without a limit that was exceeded: nobody waits that long for a step.
LONG_S = 60.0
# The last sign of life, of two looks at the same stall, is the same but for rounding.
SAME_SIGN_NS = NS_PER_S
INTERRUPTS = frozenset({"KeyboardInterrupt", "SystemExit"})  # somebody has waited long enough
CPU, READ = ((Tag.HOST + name).removeprefix(Tag.ALL) for name in (HostMetric.CPU, HostMetric.READ))


@dataclass(frozen=True)
class Stall:
    """The time without progress at the end of a capture."""

    state: str  # STUCK, SLOW or UNSURE
    since_ns: int
    until_ns: int  # the last that is known of it
    step: int  # steps that had finished
    why: str  # in words: what shows the state
    blamed: Blamed | None

    @property
    def lasted_ps(self) -> int:
        return (self.until_ns - self.since_ns) * PS_PER_NS

    @property
    def bucket(self) -> Bucket:
        return self.blamed.bucket if self.blamed is not None else "unknown"

    @property
    def sentence(self) -> str:
        """Without its full stop."""
        place = f"after step {self.step:,}" if self.step else "before the first step"
        at = f"{moment(self.since_ns)} ({place})"
        if self.state == STUCK and self.blamed is not None:
            never = " and never goes on" if self.bucket != COMMUNICATION else ""
            return f"Stuck since {at}: {self.blamed.subject} {self.blamed.waits_in}{never}"
        lasted = f"o step had finished for {seconds(self.lasted_ps)} since {at}"
        if self.state == SLOW:
            return f"Slow, not stuck: n{lasted}, and {self.why}"
        return f"N{lasted}; whether it is stuck is not known, because {self.why}"


def stall_of_run(captures: Sequence[Capture], has_pipeline: bool = False) -> Stall | None:
    """Of a cluster, the worker that stands still by itself: the others only wait for it."""
    found = (_stall_of(capture, captures, has_pipeline) for capture in captures)
    stalls = [stall for stall in found if stall is not None]
    stuck = [stall for stall in stalls if stall.state == STUCK]
    own = [stall for stall in stuck if stall.bucket != COMMUNICATION]
    return next(iter((*own, *stuck, *stalls)), None)


def _stall_of(capture: Capture, captures: Sequence[Capture], has_pipeline: bool) -> Stall | None:
    """How the capture ends, if it ends without progress."""
    looks = _last_looks(capture)
    if not looks:
        return None
    others = [other for other in captures if other is not capture]
    scene = Scene(capture, looks, others, has_pipeline)
    reason = blamed(scene)
    state, why = _state(scene, reason)
    if reason is not None and scene.has_peers and reason.bucket != COMMUNICATION:
        reason = replace(reason, subject=f"{reason.subject} of {scene.me}")
    since_ns = looks[0].sign_ns
    until_ns = max(looks[-1].ns, since_ns)
    return Stall(state, since_ns, until_ns, looks[-1].step, why, reason)


def _last_looks(capture: Capture) -> tuple[Look, ...]:
    """Looks since the last sign of life, if that is how the capture ends."""
    looks = [look for look in capture.looks if not _is_of_an_error(look)]
    if not looks or _went_on(capture, looks[-1].ns):
        return ()
    sign_ns = looks[-1].sign_ns
    return tuple(look for look in looks if abs(look.sign_ns - sign_ns) <= SAME_SIGN_NS)


def _went_on(capture: Capture, ns: int) -> bool:
    """Whether something was finished after that, if only the program."""
    steps = capture.series.get(STEP_SECONDS)
    signs = [mark.ns for mark in capture.marks] + ([int(steps.wall_ns[-1])] if steps else [])
    if max(signs, default=0) > ns:
        return True
    errors = {d.error.type for d in capture.dumps if _is_of_an_error(d) and d.ns > ns}
    by_itself = capture.end is not None and capture.end.reason == StopReason.EXIT
    return by_itself or bool(errors - INTERRUPTS)


def _is_of_an_error(look: Look) -> bool:
    return isinstance(look, DumpRecord) and look.reason == StopReason.EXCEPTION


# ---------------------------------------------------------------- slow or stuck


def _state(scene: Scene, reason: Blamed | None) -> tuple[str, str]:
    if isinstance(scene.last, DumpRecord) and scene.last.interpreter_held:
        return _state_if_held(reason)
    cores = _cores(scene)
    if cores is not None and cores >= IDLE_CORES:
        return SLOW, f"the process was at work, with {percent(cores, 1)} of a core"
    if _is_reading(scene):
        return SLOW, "the process was reading from its disks"
    if reason is not None and reason.sleeps:
        return SLOW, f"{reason.subject} sleeps"
    waits_for_others = reason is not None and reason.bucket == COMMUNICATION
    if waits_for_others and (busy := _busy_worker(scene)):
        return SLOW, f"{busy} was at work"
    if not _is_over_the_limit(scene):
        return UNSURE, f"{scene.last.idle_s:.0f} s are not long enough to tell"
    if cores is not None and waits_for_others and silent_workers(scene.capture, scene.others):
        return STUCK, "no core was at work, and another worker had fallen silent"
    if cores is None or not _stands_still(scene):
        return UNSURE, "the threads were seen in different places, or only once"
    if reason is None or not reason.waits_in:
        return UNSURE, "what it waits for is not known"
    return STUCK, (
        f"no core was at work, and in all of {len(scene.looks)} looks the threads stood at the "
        "same lines"
    )


def _state_if_held(reason: Blamed | None) -> tuple[str, str]:
    """One look is all there is. Only what is known to wait, and for what, is stuck."""
    if reason is not None and reason.bucket == COMMUNICATION:
        return STUCK, "no Python could run, because TensorFlow held the interpreter meanwhile"
    return UNSURE, "native code held the interpreter, and may have computed or waited"


def _cores(scene: Scene) -> float | None:
    """Cores at work, usually: saving a profile in the middle takes a moment's work."""
    since_ns = scene.looks[0].sign_ns
    seen = {look.ns: look.cpu_s for look in scene.looks if look.cpu_s is not None}
    series = scene.capture.series.get(CPU)
    if series is not None:
        # The step itself may have ended within the second.
        late = series.wall_ns > since_ns + NS_PER_S
        seen |= dict(zip(series.wall_ns[late].tolist(), series.value[late].tolist(), strict=True))
    times = sorted(seen)
    rates = [(seen[b] - seen[a]) * NS_PER_S / (b - a) for a, b in pairwise(times)]
    lasts_s = (times[-1] - times[0]) / NS_PER_S if times else 0.0
    return float(np.median(rates)) if rates and lasts_s >= LEAST_SECONDS else None


def _is_reading(scene: Scene) -> bool:
    series = scene.capture.series.get(READ)
    if series is None or len(series) == 0:
        return False
    halves = np.linspace(scene.looks[0].sign_ns, scene.last.ns, 3)
    # Written only when it has changed: the value before holds.
    at = np.searchsorted(series.wall_ns, halves, side="right") - 1
    return bool((np.diff(series.value[np.maximum(at, 0)]) >= READING_BYTES).all())


def _is_over_the_limit(scene: Scene) -> bool:
    dumped = any(
        isinstance(look, DumpRecord) and look.reason == StopReason.NO_STEP for look in scene.looks
    )
    return dumped or scene.last.idle_s >= LONG_S


def _stands_still(scene: Scene) -> bool:
    """The threads that count are at the same lines in all looks."""
    lasts_s = (scene.last.ns - scene.looks[0].ns) / NS_PER_S
    if len(scene.looks) < LEAST_LOOKS or lasts_s < LEAST_SECONDS:
        return False
    return len({frozenset(map(_place, _telling(look))) for look in scene.looks}) == 1


def _telling(look: Look) -> list[ThreadStack]:
    """The main thread, and those that run the user's code for TensorFlow."""
    return [t for t in look.threads if t.main or is_called_by_tensorflow(stack_of(t))]


def _place(thread: ThreadStack) -> tuple[bool, tuple[str, ...]]:
    return thread.main, thread.frames


def _busy_worker(scene: Scene) -> str:
    """Another worker that does something, for which this one only has to wait."""
    silent = silent_workers(scene.capture, scene.others)
    for other in scene.others:
        stall = _stall_of(other, [other], scene.has_pipeline) if other not in silent else None
        if other not in silent and (stall is None or stall.state == SLOW):
            return str(other.environment.task or "another worker")
    return ""
