"""A process in which no step finishes anymore: is it slow, stuck or in an endless loop?

A capture looks at such a process once a second. It is stuck only if nothing was seen to move: no
core at work, nothing read, and the thread in question waiting at the same line each time. It is
endless if a loop computes and cannot end. Whatever else computes, reads or merely sleeps is slow.
Nothing is said about the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stall_analyzer.captures.capture_format import StopReason, TrainingPhase
from stall_analyzer.captures.look_records import Look
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.format import percent
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.signals.ending.blame import blamed
from stall_analyzer.signals.ending.busy_python import endless_loop, fixed_loop, often_traced
from stall_analyzer.signals.ending.endless_work import FIT, endless_work, slow_work
from stall_analyzer.signals.ending.last_pause import (
    is_held,
    is_of_an_error,
    is_over_the_limit,
    last_looks,
    next_sign_ns,
    of_one_pause,
    was_held_there,
)
from stall_analyzer.signals.ending.python_stacks import FITS, GENERATES, module_of, stack_of
from stall_analyzer.signals.ending.scene import COMMUNICATION, Blamed, Scene
from stall_analyzer.signals.ending.stall import ENDLESS, SLOW, STUCK, UNSURE, Stall
from stall_analyzer.signals.ending.standing import (
    IDLE_CORES,
    OUTSIDE_OF_FIT,
    are_replaced,
    busy_child,
    cores_at_work,
    is_blocked,
    is_one_preparation,
    is_reading,
    is_served,
    is_woken,
    is_worth_a_word,
    stands_still,
    still_at_the_end,
)
from stall_analyzer.signals.ending.waits import FROM_OUTSIDE
from stall_analyzer.signals.ending.waits_for_peers import silent_workers

# Buckets of a step that takes long: it may also be one that is being traced.
OPEN: tuple[Bucket, ...] = ("compute", "input", "unknown")
# Waits that a process started by this one may end.
OF_PROCESSES = ("process", "pool", "future", "connection", "pipe")


def stall_of_run(captures: Sequence[Capture], has_pipeline: bool = False) -> Stall | None:
    """In a cluster, the worker that is stuck on its own: the others only wait for it."""
    found = (stall_of(capture, captures, has_pipeline) for capture in captures)
    stalls = [stall for stall in found if stall is not None]
    stuck = [stall for stall in stalls if stall.never_goes_on]
    own = [stall for stall in stuck if stall.bucket != COMMUNICATION]
    if len(own) < len(stuck):  # one that polls also waits for somebody
        own = [stall for stall in own if stall.blamed is None or stall.blamed.kind != "polling"]
    waiting = [stall for stall in stuck if stall.bucket == COMMUNICATION]
    return next(iter((*own, *waiting, *stuck, *stalls)), None)


def stall_of(
    capture: Capture, captures: Sequence[Capture], has_pipeline: bool = False
) -> Stall | None:
    """How the capture ends, if it ends without progress."""
    others = [other for other in captures if other is not capture]
    looks = last_looks(capture)
    if not looks:
        return _pause_before_the_end(Scene(capture, (), others, has_pipeline))
    scene = Scene(capture, looks, others, has_pipeline)
    outside = scene.last.phase in OUTSIDE_OF_FIT and not is_held(scene.last)
    outside = outside and not _is_in_fit(scene.last)
    judged = _endless(scene) or (_traces(scene) if outside else None)
    if judged is None:
        all_of_it = scene
        if outside:
            scene = replace(scene, looks=still_at_the_end(looks))
        judged = _judged(scene)
        if outside and judged[0] in (SLOW, UNSURE) and not is_worth_a_word(scene):
            scene, judged = all_of_it, _judged(all_of_it)
            if not (is_one_preparation(scene) and is_over_the_limit(scene) and judged[0] == SLOW):
                return None
        if not outside and judged[0] == SLOW and (judged[2] is None or judged[2].bucket in OPEN):
            judged = _traces(scene) or judged
    state, why, reason = judged
    since_ns = scene.looks[0].sign_ns if scene.looks[0] is looks[0] else scene.looks[0].ns
    return _stall(scene, state, why, reason, since_ns)


def _is_in_fit(look: Look) -> bool:
    """Keras takes a first batch, to build the model, before it announces that fit begins."""
    if look.main is None or look.phase != TrainingPhase.STARTUP:
        return False
    stack = stack_of(look.main)
    is_fit = any(frame.name == FIT and frame.is_of(FITS) for frame in stack.frames)
    return is_fit and stack.passes(GENERATES)


def _stall(scene: Scene, state: str, why: str, reason: Blamed | None, since_ns: int) -> Stall:
    if reason is not None and scene.has_peers and reason.bucket != COMMUNICATION:
        reason = replace(reason, subject=_of_worker(reason.subject, scene.me))
    until_ns = max(scene.looks[-1].ns, since_ns)
    step = scene.last.step
    if is_held(scene.last):  # it does not know about steps that finished shortly before
        step = max(look.step for look in scene.capture.looks)
    return Stall(
        state,
        since_ns,
        until_ns,
        step,
        why,
        reason,
        scene.last.threads,
        attached=scene.is_attached,
        is_long=is_over_the_limit(scene),
    )


def _of_worker(subject: str, worker: str) -> str:
    """The subject with its worker after the noun: a clause may follow."""
    for clause in (" does not exit:", ","):
        noun, begins, rest = subject.partition(clause)
        if begins:
            return f"{noun} of {worker}{begins}{rest}"
    return f"{subject} of {worker}"


# ---------------------------------------------------------------- a pause that ended


def _pause_before_the_end(scene: Scene) -> Stall | None:
    """A pause between steps that was too long, if the run was ended before it had continued for as
    long as the pause had lasted: the next such pause was under way."""
    dumps = [d for d in scene.capture.dumps if d.reason == StopReason.NO_STEP and d.step]
    end = scene.capture.end
    if not dumps or (end is not None and end.reason == StopReason.EXIT):
        return None
    dump = dumps[-1]
    went_on_ns = next_sign_ns(scene.capture, dump)
    ended_ns = end.ns if end is not None else scene.capture.last_ns
    if went_on_ns is None or ended_ns - went_on_ns > went_on_ns - dump.sign_ns:
        return None
    looks = [look for look in scene.capture.looks if not is_of_an_error(look)]
    last = max((x for x in looks if x.ns < went_on_ns), key=lambda x: x.ns)
    scene = replace(scene, looks=of_one_pause(looks, last))
    reason = blamed(scene)
    does = "was sleeping" if reason is not None and reason.sleeps else "was the reason"
    why = (
        f"{reason.subject} {does}; then training continued"
        if reason is not None
        else "then training continued"
    )
    stall = _stall(scene, SLOW, why, reason, dump.sign_ns)
    return replace(stall, until_ns=went_on_ns, went_on=True)


# ---------------------------------------------------------------- slow or stuck


def _endless(scene: Scene) -> tuple[str, str, Blamed | None] | None:
    """Work that cannot end, wherever in it the looks found the process."""
    if is_held(scene.last) or was_held_there(scene) or not is_over_the_limit(scene):
        return None
    if (found := endless_work(scene)) is not None:
        return ENDLESS, WORKS_FOREVER, found
    if (found := fixed_loop(scene)) is not None:
        return ENDLESS, NEVER_CHANGES, found
    return None


def _traces(scene: Scene) -> tuple[str, str, Blamed | None] | None:
    """A custom loop may run steps that nobody counts, but not while graphs are being built."""
    found = often_traced(scene) if is_over_the_limit(scene) else None
    return (SLOW, *found) if found is not None else None


def _judged(scene: Scene) -> tuple[str, str, Blamed | None]:
    reason = blamed(scene)
    if is_held(scene.last) or was_held_there(scene):
        return _state_if_held(scene, reason)
    if reason is not None and is_over_the_limit(scene):
        if (spins := endless_loop(scene, reason)) is not None:
            return (ENDLESS, *spins)
        if (polled := _polled(scene, reason)) is not None:
            return STUCK, POLLS, polled
    if scene.is_attached and reason is not None and _rests(reason):
        return SLOW, RESTS, reason
    if reason is not None and reason.kind == "pool" and are_replaced(scene):
        does = "for worker processes that keep ending before they have done anything,"
        if is_over_the_limit(scene) and stands_still(scene):
            waits_in = f"{reason.waits_in.partition(' for ')[0]} {does}"
            return STUCK, REPLACED, replace(reason, waits_in=waits_in, kind="replaced")
    state, why = _state(scene, reason)
    if state == SLOW and reason is not None and (work := slow_work(scene)) is not None:
        words, kind, bucket = work
        return SLOW, f"{why}: {words}", replace(reason, kind=kind, bucket=bucket)
    return state, why, reason


def _rests(reason: Blamed) -> bool:
    return reason.kind != "user" and stack_of(reason.thread).rests  # not in a debugger


WORKS_FOREVER = "the process was at work the whole time, on something that cannot end"
NEVER_CHANGES = "what the loop's condition depends on was recomputed and was always the same"
RESTS = "the process is waiting for the user or for requests, as notebooks and servers do"
REPLACED = "the pool had different workers each time, and none of its tasks was done"
POLLS = "the thread kept sleeping in one place, and nothing else happened"


def _polled(scene: Scene, reason: Blamed) -> Blamed | None:
    """A thread that checks again and again whether something has come, in its own loop or inside a
    library that it called. One long sleep does not count."""
    thread, frames = reason.thread, stack_of(reason.thread).frames
    in_its_own_code = bool(frames) and frames[0].is_users
    in_a_library = thread.loop is None and is_woken(scene, thread)
    is_looping = thread.loop is not None and thread.loop.word == "while"
    is_polling = in_its_own_code and reason.sleeps and (is_looping or in_a_library)
    if not is_polling or is_blocked(scene, thread) or not stands_still(scene):
        return None
    cores = cores_at_work(scene)
    if cores is None or cores >= IDLE_CORES or busy_child(scene) or is_reading(scene):
        return None
    where = "inside the call on that line" if in_a_library else "in a while loop"
    does = f"keeps sleeping and checking, {where}, for something that never comes,"
    return replace(reason, waits_in=does, sleeps=False, kind="polling", confidence=0.7)


def _state(scene: Scene, reason: Blamed | None) -> tuple[str, str]:
    cores = cores_at_work(scene)
    moves = _what_moves(scene, reason, cores)
    if moves:
        return SLOW, moves
    if not is_over_the_limit(scene):
        return UNSURE, f"{scene.last.idle_s:.0f} s is not long enough to tell"
    main = scene.last.main
    if scene.is_attached and main is not None and is_served(scene, main):
        return UNSURE, "its main thread keeps waking up, and its steps cannot be seen from outside"
    waits_for_others = reason is not None and reason.bucket == COMMUNICATION
    if cores is not None and waits_for_others and silent_workers(scene.capture, scene.others):
        return STUCK, "no core was at work, and another worker had fallen silent"
    if cores is None or not stands_still(scene):
        return UNSURE, "the threads were seen in different places, or only once"
    if reason is None or not reason.waits_in:
        return UNSURE, "nothing shows what the process is waiting for"
    if reason.kind == "graph_wait" and not is_blocked(scene, reason.thread):
        return UNSURE, (
            "steps that the capture does not count may have finished between two of its looks"
        )
    idle = "no core was at work, and " if cores < IDLE_CORES else ""
    looked = f"all {len(scene.calm)} times the capture looked"
    return STUCK, f"{idle}the threads were at the same lines {looked}"


def _what_moves(scene: Scene, reason: Blamed | None, cores: float | None) -> str:
    """What is still doing something, so that the rest only has to wait; empty: nothing."""
    if not _waits_for_nobody_here(scene, reason):
        if cores is not None and cores >= IDLE_CORES:
            return f"{_who(reason)} was at work, using {_of_cores(cores)}{_in(reason)}"
        if is_reading(scene):
            return "the process was reading from disk"
    if reason is None:
        return ""
    if reason.sleeps:
        return f"{reason.subject} is sleeping"
    if reason.kind in OF_PROCESSES and (busy := busy_child(scene)):
        return f"{busy}, was at work"
    if reason.kind == "pool" and len({look.tasks_left for look in scene.calm}) > 1:
        return "the pool finished some of its tasks"
    if reason.kind == "socket" and is_served(scene, reason.thread):
        return f"{reason.subject} still received something through its socket now and then"
    if reason.bucket == COMMUNICATION and (busy := _busy_worker(scene)):
        return f"{busy} was at work"
    return ""


def _waits_for_nobody_here(scene: Scene, reason: Blamed | None) -> bool:
    """Whether it stays in one call that no other thread of the process can end: then it does not
    matter that the others are at work."""
    if reason is None or reason.kind not in FROM_OUTSIDE:
        return False
    return stands_still(scene) and is_blocked(scene, reason.thread)


def _of_cores(cores: float) -> str:
    """`97% of a core`, `3.4 cores`"""
    return f"{cores:.1f} cores" if cores >= 1.05 else f"{percent(cores, 1)} of a core"


def _who(reason: Blamed | None) -> str:
    """The thread in question, unless it waits for others that are at work."""
    if reason is None or reason.waits_in or reason.sleeps:
        return "the process"
    return reason.subject


def _in(reason: Blamed | None) -> str:
    """The loop that its line is in, which may be the one that does not end."""
    if reason is None or reason.waits_in or reason.sleeps:
        return ""
    stack, loop = stack_of(reason.thread), reason.thread.loop
    if stack.calls_itself:
        return ", in a function that keeps calling itself"
    if stack.unrolls:
        return f", unrolling a {stack.unrolls} loop"
    if loop is None:
        return ""
    lines = f"line {loop.line}" if loop.line == loop.last else f"lines {loop.line} to {loop.last}"
    may_last = "; check what ends it" if loop.word == "while" else ""
    return f", in a {loop.word} loop ({lines}{may_last})"


def _state_if_held(scene: Scene, reason: Blamed | None) -> tuple[str, str, Blamed | None]:
    """There is only one look. Only a process that is known to wait, and for what, is stuck."""
    if reason is not None and reason.bucket == COMMUNICATION:
        why = "no Python could run, because TensorFlow held the interpreter"
        return STUCK, why, reason
    main = scene.last.main
    calls = stack_of(main).library_calls if main is not None else ()
    if reason is not None and any(module_of(f).partition(".")[0] == "re" for f in calls):
        why = "no Python could run, because matching a regular expression holds the interpreter"
        does = "is matching a regular expression that takes forever"
        return ENDLESS, why, replace(reason, waits_in=does)
    why = "native code, which may have been computing or waiting, held the interpreter"
    return UNSURE, why, reason


def _busy_worker(scene: Scene) -> str:
    """Another worker that is doing something, so that this one only has to wait for it."""
    silent = silent_workers(scene.capture, scene.others)
    for other in scene.others:
        stall = stall_of(other, [other], scene.has_pipeline) if other not in silent else None
        if other not in silent and (stall is None or stall.state == SLOW):
            return str(other.environment.task or "another worker")
    return ""
