"""A process in which no step finishes any more: is it slow or stuck, and on what?

A capture looks at such a process once a second. Stuck is only what was seen to stand still: no core
at work, nothing read, and the thread in question waiting at the same line each time. Whatever
computes, reads or merely sleeps is slow. Of the rest nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from stall_analyzer.capture_format import Host, Phase, Reason, Tag
from stall_analyzer.capture_log import Dump, Look, ThreadStack
from stall_analyzer.format import moment, seconds
from stall_analyzer.logged import STEP_SECONDS
from stall_analyzer.model import PS_PER_NS, Capture
from stall_analyzer.signals.stacks import (
    CALLS_BACK,
    CALLS_PYTHON,
    GENERATES,
    SETS_UP_CLUSTER,
    Frame,
    Stack,
    proof,
    stack_of,
)

NS = 1_000_000_000
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
SAME_SIGN_NS = NS
# A worker that was heard of so much later than another has outlived it.
OUTLIVED_NS = 10 * NS
INTERRUPTS = frozenset({"KeyboardInterrupt", "SystemExit"})  # somebody has waited long enough
SLEEPS = ("nanosleep", "clock_nanosleep", "hrtimer_nanosleep")
# Before Python 3.11, time.sleep() was a select() without files.
SLEEPS_OF_OLD_PYTHON = ("select", "pselect6")
DISK = "D"
PROOF_LINES = 6


@dataclass(frozen=True)
class Blamed:
    """What training waits for."""

    bucket: str
    subject: str  # "the generator at train.py:41"
    waits_in: str  # "waits in queue.get()"; empty where nothing says
    proof: tuple[str, ...]  # lines of the stack
    sleeps: bool = False
    confidence: float = 0.9


@dataclass(frozen=True)
class Stall:
    """The time without progress at the end of a capture."""

    state: str  # STUCK, SLOW or UNSURE
    since_ns: int
    until_ns: int  # the last that is known of it
    step: int  # steps that had finished
    phase: str
    why: str  # in words: what shows the state
    blamed: Blamed | None

    @property
    def lasted_ps(self) -> int:
        return (self.until_ns - self.since_ns) * PS_PER_NS

    @property
    def place(self) -> str:
        """`after step 37`."""
        return f"after step {self.step:,}" if self.step else "before the first step"

    @property
    def sentence(self) -> str:
        """Without its full stop."""
        at = f"{moment(self.since_ns)} ({self.place})"
        if self.state == STUCK and self.blamed is not None:
            never = " and never goes on" if self.blamed.bucket != "communication" else ""
            return f"Stuck since {at}: {self.blamed.subject} {self.blamed.waits_in}{never}"
        lasted = f"No step had finished for {seconds(self.lasted_ps)} since {at}"
        if self.state == SLOW:
            return f"Slow, not stuck: {lasted[0].lower()}{lasted[1:]}, and {self.why}"
        return f"{lasted}; whether it is stuck is not known, because {self.why}"


def stall_of_run(captures: Sequence[Capture]) -> Stall | None:
    """Of a cluster, the worker that stands still by itself: the others only wait for it."""
    stalls = [
        stall
        for capture in captures
        if (stall := stall_of(capture, [c for c in captures if c is not capture])) is not None
    ]
    stuck = [stall for stall in stalls if stall.state == STUCK]
    own = [s for s in stuck if s.blamed is not None and s.blamed.bucket != "communication"]
    return next(iter((*own, *stuck, *stalls)), None)


def stall_of(capture: Capture, others: Sequence[Capture] = ()) -> Stall | None:
    """How the capture ends, if it ends without progress. `others`: workers of the same cluster."""
    looks = _last_looks(capture)
    if not looks:
        return None
    return _Case(capture, looks, others).judged()


def _last_looks(capture: Capture) -> tuple[Look, ...]:
    """Looks since the last sign of life, if that is how the capture ends."""
    looks = [look for look in capture.looks if not _is_of_an_error(look)]
    if not looks or _went_on(capture, looks[-1].ns):
        return ()
    sign_ns = _sign_ns(looks[-1])
    return tuple(look for look in looks if abs(_sign_ns(look) - sign_ns) <= SAME_SIGN_NS)


def _went_on(capture: Capture, ns: int) -> bool:
    """Whether something was finished after that, if only the program."""
    steps = capture.series.get(STEP_SECONDS)
    signs = [mark.ns for mark in capture.marks] + ([int(steps.wall_ns[-1])] if steps else [])
    if max(signs, default=0) > ns:
        return True
    errors = {dump.error_type.rpartition(".")[2] for dump in capture.dumps if dump.ns > ns}
    failed = any(_is_of_an_error(dump) for dump in capture.dumps if dump.ns > ns)
    by_itself = capture.end is not None and capture.end.reason == Reason.EXIT
    return by_itself or (failed and not errors & INTERRUPTS)


def _sign_ns(look: Look) -> int:
    return look.ns - round(look.idle_s * NS)


def _is_of_an_error(look: Look) -> bool:
    return isinstance(look, Dump) and look.reason == Reason.EXCEPTION


class _Case:
    def __init__(
        self, capture: Capture, looks: tuple[Look, ...], others: Sequence[Capture]
    ) -> None:
        self.capture, self.looks, self.others = capture, looks, others
        self.last = looks[-1]
        self.since_ns = _sign_ns(looks[0])
        self.main = stack_of(self.last.main) if self.last.main is not None else None

    def judged(self) -> Stall:
        blamed = self.blamed()
        state, why = self.state(blamed)
        if blamed is not None and self._has_peers and blamed.bucket != "communication":
            blamed = replace(blamed, subject=f"{blamed.subject} of {self._me}")
        return Stall(
            state=state,
            since_ns=self.since_ns,
            until_ns=max(self.last.ns, self.since_ns),
            step=self.last.step,
            phase=self.last.phase,
            why=why,
            blamed=blamed,
        )

    # ------------------------------------------------------------ slow or stuck

    def state(self, blamed: Blamed | None) -> tuple[str, str]:
        if isinstance(self.last, Dump) and self.last.interpreter_held:
            return self._state_if_held(blamed)
        if self.cores is not None and self.cores >= IDLE_CORES:
            return SLOW, f"the process was at work, with {self.cores:.0%} of a core"
        if self.is_reading:
            return SLOW, "the process was reading from its disks"
        if blamed is not None and blamed.sleeps:
            return SLOW, f"{blamed.subject} sleeps"
        if not self.is_over_the_limit:
            return UNSURE, f"{self.last.idle_s:.0f} s are not long enough to tell"
        if self.cores is None or not self.stands_still:
            return UNSURE, "the threads were seen in different places, or only once"
        if blamed is None or not (blamed.waits_in or blamed.bucket == "communication"):
            return UNSURE, "what it waits for is not known"
        return STUCK, (
            f"no core was at work, and in all of {len(self.looks)} looks the threads stood at the "
            "same lines"
        )

    def _state_if_held(self, blamed: Blamed | None) -> tuple[str, str]:
        """One look is all there is. Only what is known to wait, and for what, is stuck."""
        if blamed is not None and blamed.bucket == "communication":
            return (
                STUCK,
                "no Python could run, because TensorFlow held the interpreter meanwhile",
            )
        return UNSURE, "native code held the interpreter, and may have computed or waited"

    @cached_property
    def cores(self) -> float | None:
        """Cores at work, usually: saving a profile in the middle takes a moment's work."""
        seen = [(look.ns, look.cpu_s) for look in self.looks if look.cpu_s is not None]
        rates = [
            (cpu - before) * NS / (ns - earlier)
            for (earlier, before), (ns, cpu) in pairwise(seen)
            if ns > earlier
        ]
        lasts_s = (seen[-1][0] - seen[0][0]) / NS if seen else 0.0
        return float(np.median(rates)) if rates and lasts_s >= LEAST_SECONDS else None

    @cached_property
    def is_reading(self) -> bool:
        series = self.capture.series.get((Tag.HOST + Host.READ).removeprefix(Tag.ALL))
        if series is None or len(series) == 0:
            return False
        halves = np.linspace(self.since_ns, self.last.ns, 3)
        # Written only when it has changed: the value before holds.
        at = np.searchsorted(series.wall_ns, halves, side="right") - 1
        read = np.diff(series.value[np.maximum(at, 0)])
        return bool((read >= READING_BYTES).all())

    @property
    def is_over_the_limit(self) -> bool:
        dumped = any(
            isinstance(look, Dump) and look.reason == Reason.NO_STEP for look in self.looks
        )
        return dumped or self.last.idle_s >= LONG_S

    @property
    def stands_still(self) -> bool:
        """The threads that count are at the same lines in all looks."""
        lasts_s = (self.last.ns - self.looks[0].ns) / NS
        if len(self.looks) < LEAST_LOOKS or lasts_s < LEAST_SECONDS:
            return False
        places = {frozenset(map(_place, self._telling(look))) for look in self.looks}
        return len(places) == 1

    def _telling(self, look: Look) -> list[ThreadStack]:
        """The main thread, and those that run the user's code for TensorFlow."""
        return [t for t in look.threads if t.main or _is_called_by_tensorflow(stack_of(t))]

    # ------------------------------------------------------------ on what

    def blamed(self) -> Blamed | None:
        main = self.main
        if main is None:
            return None
        if self.last.phase == Phase.STARTUP and self._has_peers and main.passes(SETS_UP_CLUSTER):
            return self._peers(main)
        if main.is_inside_tensorflow:
            called = [stack_of(t) for t in self.last.threads if not t.main]
            called = [stack for stack in called if _is_called_by_tensorflow(stack)]
            if called:
                return self._python_for_tensorflow(called)
            if main.fetches:
                return self._fetch(main)
            return self._peers(main) if self._has_peers else self._runtime(main)
        return self._python_of_main(main)

    def _python_for_tensorflow(self, stacks: Sequence[Stack]) -> Blamed | None:
        """A generator or a function that TensorFlow called and that does not return."""
        named = [stack for stack in stacks if stack.users is not None]
        stack = (named or list(stacks))[0]
        place = stack.users or stack.owner
        if place is None:
            return None
        generates = stack.passes(GENERATES)
        what = "generator" if generates else "Python function"
        return Blamed(
            bucket="input" if generates or self._pipeline_has_threads else "host",
            subject=f"the {what} at {place.place}",
            waits_in=self._wait(stack),
            proof=(*proof(stack, PROOF_LINES),),
            sleeps=self._sleeps(stack),
        )

    def _python_of_main(self, main: Stack) -> Blamed | None:
        place = main.users or main.owner
        if place is None:
            return None
        return Blamed(
            bucket="input" if main.passes(GENERATES) else "host",
            subject=f"{_role(main, place)} at {place.place}",
            waits_in=self._wait(main),
            proof=(*proof(main, PROOF_LINES),),
            sleeps=self._sleeps(main),
        )

    def _fetch(self, main: Stack) -> Blamed:
        place = main.users
        return Blamed(
            bucket="input",
            subject=f"the training script at {place.place}" if place is not None else "the step",
            waits_in=f"waits for its next batch ({main.frames[0].name})",
            proof=(*proof(main, PROOF_LINES),),
        )

    def _runtime(self, main: Stack) -> Blamed | None:
        """Inside of TensorFlow, with no Python that could hold it up."""
        only_cpu = all("CPU" in device.upper() for device in self.capture.environment.devices)
        if self.last.phase != Phase.TRAIN_BATCH or not only_cpu or not self._pipeline_has_threads:
            return None
        return Blamed(
            bucket="input",
            subject="the step",
            waits_in="waits inside TensorFlow, most likely for its next batch",
            proof=(*proof(main, PROOF_LINES),),
            confidence=0.6,
        )

    def _peers(self, main: Stack) -> Blamed:
        missing = _missing(self.capture, self.others)
        starting = self.last.step == 0 and self.last.phase == Phase.STARTUP
        waits = (
            "waits until all members of the cluster have come"
            if starting
            else ("waits for the other workers")
        )
        return Blamed(
            bucket="communication",
            subject=self._me,
            waits_in=f"waits for {missing}" if missing else waits,
            proof=(*proof(main, PROOF_LINES),),
            confidence=0.9 if missing else 0.7,
        )

    @property
    def _me(self) -> str:
        task = self.capture.environment.task
        return str(task) if task is not None else "this worker"

    @property
    def _has_peers(self) -> bool:
        return len(self.capture.environment.training_tasks) > 1

    @cached_property
    def _native(self) -> Dump | None:
        """The last dump that holds the kernel's view."""
        dumps = [look for look in self.looks if isinstance(look, Dump) and look.native]
        return dumps[-1] if dumps else None

    @property
    def _pipeline_has_threads(self) -> bool:
        native = self._native.native if self._native is not None else ()
        return any(threads.name.startswith("tf_data") for threads in native)

    def _wait(self, stack: Stack) -> str:
        if stack.wait:
            return f"waits in {stack.wait}"
        native = self._native.native if self._native is not None else ()
        if not any(threads.wait for threads in native) or self._sleepers:
            return ""  # what it does cannot be seen, or is not known to be no sleep
        if any(threads.state == DISK for threads in native):
            return ""  # a disk or a network may still answer
        return "waits for a lock, or for something outside of Python,"

    def _sleeps(self, stack: Stack) -> bool:
        """Whether it is in time.sleep(), which leaves no frame: all that may be in it are."""
        may_sleep = [t for t in self.last.threads if not _waits_by_itself(stack_of(t))]
        return not stack.wait and 0 < sum(t.count for t in may_sleep) <= self._sleepers

    @cached_property
    def _sleepers(self) -> int:
        """Threads that sleep, in all dumps of the stall."""
        is_old = re.match(r"3\.(\d|10)\b", self.capture.environment.python)
        names = (*SLEEPS, *SLEEPS_OF_OLD_PYTHON) if is_old else SLEEPS
        dumps = [look for look in self.looks if isinstance(look, Dump) and look.native]
        counts = [sum(t.count for t in dump.native if t.wait in names) for dump in dumps]
        return min(counts, default=0)


def _place(thread: ThreadStack) -> tuple[bool, tuple[str, ...]]:
    return thread.main, thread.frames


def _waits_by_itself(stack: Stack) -> bool:
    """Whether its frames say what it waits in."""
    return bool(stack.wait) or stack.is_inside_tensorflow


def _is_called_by_tensorflow(stack: Stack) -> bool:
    return stack.passes(CALLS_PYTHON) or stack.passes(GENERATES)


def _role(main: Stack, place: Frame) -> str:
    if main.passes(GENERATES):
        return "the data's own code"
    return "the callback" if main.passes(CALLS_BACK) else "the training script"


def _missing(capture: Capture, others: Sequence[Capture]) -> str:
    """Which workers do not answer, as far as their own captures tell."""
    mine = capture.environment.task
    heard = {other.environment.task: other for other in others}
    words = []
    for task in capture.environment.training_tasks:
        if task == mine:
            continue
        other = heard.get(task)
        if other is None:
            words.append(f"{task}, which has left no record here")
        elif other.end is not None or other.last_ns < capture.last_ns - OUTLIVED_NS:
            words.append(f"{task}, which was last heard of at {moment(other.last_ns)}")
    return " and ".join(words)
