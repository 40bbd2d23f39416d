"""Which looks at a process show the pause that its capture ends with, and whether it continued."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stall_analyzer.align.logged_epoch import STEP_SECONDS
from stall_analyzer.captures.capture_format import MarkName, StopReason
from stall_analyzer.captures.capture_records import NS_PER_S
from stall_analyzer.captures.look_records import DumpRecord, Look
from stall_analyzer.captures.stack_frames import OURS, frame_of
from stall_analyzer.model.event_log import Capture
from stall_analyzer.signals.ending.scene import Scene

# A capture begins to look after this long without a step; a shorter pause is not worth mentioning.
PAUSE_S = 5.0
# Where no limit was exceeded: nobody waits this long for a step.
LONG_S = 60.0
# Two looks at the same stall have the same last sign of life, except for rounding.
SAME_SIGN_NS = NS_PER_S
# Ending a job ends all its processes, one after another: one that moves for a moment because
# another is gone has not continued on its own.
ENDING_NS = NS_PER_S
SIGNALS = (StopReason.SIGTERM, StopReason.SIGINT)
CTRL_C = "KeyboardInterrupt"
INTERRUPTS = frozenset({CTRL_C, "SystemExit"})  # somebody has waited long enough


def last_looks(capture: Capture) -> tuple[Look, ...]:
    """Looks since the last sign of life, if that is how the capture ends."""
    looks = [look for look in capture.looks if not is_of_an_error(look)]
    looks = [look for look in looks if not _is_being_interrupted(look)] or looks
    ending_ns = _ending_ns(capture)
    looks = [look for look in looks if look.sign_ns < ending_ns] or looks
    interrupted_ns = _interrupted_ns(capture)
    if interrupted_ns is not None:  # later ones show how the process exits
        looks = [look for look in looks if look.ns <= interrupted_ns] or looks
    same = of_one_pause(looks, looks[-1]) if looks else ()
    if not same or _went_on(capture, same[-1], interrupted_ns is not None):
        return ()
    is_pause = same[-1].idle_s >= PAUSE_S or any(map(_is_over_its_limit, same))
    return same if is_pause else ()  # a signal causes a look too, even at a healthy run


def _interrupted_ns(capture: Capture) -> int | None:
    """When somebody pressed Ctrl-C, if nothing but the fit began or ended after it."""
    last_ns = max(_signs_of_life(capture, interrupted=True), default=0)
    interrupts = (
        dump.ns
        for dump in capture.dumps
        if dump.ns > last_ns and (dump.reason == StopReason.SIGINT or dump.error.type == CTRL_C)
    )
    return min(interrupts, default=None)


def _signs_of_life(capture: Capture, interrupted: bool) -> list[int]:
    steps, ending_ns = capture.series.get(STEP_SECONDS), _ending_ns(capture)
    marks = [m.ns for m in capture.marks if not (interrupted and m.what == MarkName.FIT_END)]
    ended = steps.wall_ns[steps.wall_ns < ending_ns][-1:].tolist() if steps else []
    return [*(ns for ns in marks if ns < ending_ns), *ended]


def _ending_ns(capture: Capture) -> float:
    """After this, nothing shows that training continued on its own: a signal interrupts waits."""
    signal_ns = min((dump.signal_ns for dump in capture.dumps if dump.signal_ns), default=math.inf)
    end = capture.end
    if end is None or end.reason not in SIGNALS:
        return signal_ns
    return min(signal_ns, end.ns - ENDING_NS)


def of_one_pause(looks: Sequence[Look], last: Look) -> tuple[Look, ...]:
    return tuple(look for look in looks if look.ns <= last.ns and _is_of_pause(look, last))


def _is_of_pause(look: Look, last: Look) -> bool:
    # What is known about steps is older than a dump that was written while no Python ran.
    if is_held(look) and look.ns >= last.sign_ns:
        return True
    return abs(look.sign_ns - last.sign_ns) <= SAME_SIGN_NS


def _went_on(capture: Capture, last: Look, interrupted: bool) -> bool:
    """Whether something finished after that, even if only the program."""
    if max(_signs_of_life(capture, interrupted), default=0) > last.ns:
        return True
    # One step may finish as the run is ended; and a held process knows of fewer steps than it ran.
    if not is_held(last) and any(look.step > last.step + 1 for look in capture.looks):
        return True
    errors = {d.error.type for d in capture.dumps if is_of_an_error(d) and d.ns > last.ns}
    # A process that is seen after its end hangs in other exit handlers.
    end = capture.end if capture.end is not None and capture.end.ns > last.ns else None
    by_itself = end is not None and end.reason == StopReason.EXIT
    return (by_itself and not interrupted) or bool(errors - INTERRUPTS)


def is_of_an_error(look: Look) -> bool:
    return isinstance(look, DumpRecord) and look.reason == StopReason.EXCEPTION


def _is_being_interrupted(look: Look) -> bool:
    """Whether its main thread is only telling the capture about an error or a signal."""
    if look.main is None:
        return False
    innermost = frame_of(look.main.frames[0]) if look.main.frames else None
    return innermost is None or innermost.is_of(OURS)


def _is_over_its_limit(look: Look) -> bool:
    return isinstance(look, DumpRecord) and look.reason == StopReason.NO_STEP


def is_held(look: Look) -> bool:
    return isinstance(look, DumpRecord) and look.interpreter_held


def was_held_there(scene: Scene) -> bool:
    """Whether Python ran again only for a moment, for a signal, and was where it had been."""
    main = scene.last.main
    held = (look.main for look in scene.looks if is_held(look))
    return main is not None and any(h is not None and h.frames[:2] == main.frames[:2] for h in held)


def is_over_the_limit(scene: Scene) -> bool:
    sign_ns = scene.last.sign_ns
    dumped = any(
        _is_over_its_limit(dump) and abs(dump.sign_ns - sign_ns) <= SAME_SIGN_NS
        for dump in scene.capture.dumps
    )
    return dumped or is_held(scene.last) or scene.last.idle_s >= LONG_S


def next_sign_ns(capture: Capture, look: Look) -> int | None:
    """When the next step ended."""
    steps = capture.series.get(STEP_SECONDS)
    later = steps.wall_ns[steps.wall_ns > look.ns] if steps else ()
    return int(min(later)) if len(later) else None
