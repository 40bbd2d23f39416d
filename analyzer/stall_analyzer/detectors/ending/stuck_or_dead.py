"""The run ended or stopped making progress too early: slow, stuck, endless or dead.

What it finds
Runs that were killed, that failed, that make no progress or loop endlessly, and where they stopped:
in fit, before it or after it, up to the exit of the process. A capture (StallCallback, watch or
`stall-analyze capture`) knows this for certain. If there are only Keras event files and no epoch
ends in them, this is no more than a suspicion: a custom loop may never log the end of an epoch.

Why it stalls
Three things look alike from the outside: a long step that is still running, a job that hangs, and a
job that was killed.

How it is measured
A capture looks at the process once a second while no step finishes, and records all stacks when
that lasts too long. Stuck means that it was seen to make no progress: it used less than 2% of a
core and read nothing, with the same threads waiting at the same lines. A thread that got no
processor time between the looks, and was in a call that only something outside the process can end,
is stuck no matter what other threads do; so is one that sleeps and checks again in a `while` loop.
Anything else that computes, reads or sleeps is slow, with these exceptions, which are endless: a
`while` loop that calls nothing; a regular expression that holds the interpreter; a filter that, by
tf.data's own counts, has dropped every element of repeated data; `evaluate`, `predict`, `adapt` or
`reduce` on repeated data without a number of steps; and, most likely, a step that takes a thousand
times as long as usual and contains a `tf.while_loop` without `maximum_iterations`. An epoch over
repeated data cannot end if fit is given no number of steps. A process that is killed leaves no
final record, so its last record shows when it ended. Without a capture, the evidence is the usual
time between batches, the last batch that was logged, and how long other records kept being written
after it.

Example
A generator was fed by a thread that had failed. The verdict: stuck since 14:02:31 (after 37 steps):
the generator at train.py:41 is waiting in queue.Queue.get() and will never continue.

What to do
Give waits a timeout that raises an error, so that the run fails where it would otherwise hang.
`--threads` shows what all threads were doing. If a worker of a cluster is missing, look at that
worker first. Without a capture, find out what the process is doing: `stall-analyze attach PID`.

Blind spots
A Python loop that calls something, or the tracing of a function, may be long or endless: the report
names the lines and says what to do in either case. A wait in C code has no frame of its own; where
the kernel does not say which call the threads are waiting in, it looks the same as a sleep. Waiting
for a device that hangs looks like any other wait inside TensorFlow. Who holds a lock is known only
for an RLock, and for a lock that is held in a `with` statement or a `try` with a `finally`. Without
a capture, a healthy first epoch shows nothing until its end (unless update_freq="batch"), and a log
directory cannot say whether its process is still running.
"""

from __future__ import annotations

from stall_analyzer.captures.capture_format import StopReason
from stall_analyzer.detectors.ending.what_to_do import (
    ASK_THE_PROCESS,
    STEPS_PER_EPOCH,
    VALIDATION_STEPS,
    change_after,
    change_for,
)
from stall_analyzer.model.causes import BUCKETS
from stall_analyzer.model.findings import Evidence, Finding
from stall_analyzer.model.format import moment, seconds
from stall_analyzer.model.kinds import Severity
from stall_analyzer.model.units import PS_PER_NS
from stall_analyzer.signals.ending.lock_waits import lock_wait
from stall_analyzer.signals.ending.logged_progress import LoggedProgress
from stall_analyzer.signals.ending.process_end import KILLED, Ending
from stall_analyzer.signals.ending.python_stacks import stack_of
from stall_analyzer.signals.ending.stall import Stall
from stall_analyzer.signals.ending.waits import wait_of
from stall_analyzer.signals.signals import Signals

ID = "ST510"
BUCKET = "unknown"

# A batch that takes this many times as long as usual is no longer merely slow.
SILENT_FACTOR = 20

OTHERS_TOLD = 4


def check(signals: Signals) -> Finding | None:
    stall, ending = signals.stall, signals.ending
    if stall is not None:
        return _of_stall(signals, stall, ending)
    if ending is not None and ending.is_early:
        return _of_ending(signals, ending)
    if signals.capture is not None or signals.still_running is not None:
        return None  # it ended on its own, or is still running
    return _of_event_files(signals)


# ---------------------------------------------------------------- with a capture


def _of_stall(signals: Signals, stall: Stall, ending: Ending | None) -> Finding:
    blamed = stall.blamed
    start_ps, end_ps = _in_window(signals, stall)
    stack = blamed.stack if blamed is not None else ()
    shown = f"The thread was at {', called from '.join(stack)}." if stack else ""
    seen = "The process was watched for" if stall.attached else "No step finished for"
    what_shows_it = f"{seen} {seconds(stall.lasted_ps)}: {stall.why}."
    told = (what_shows_it, shown, _other_threads(stall), ending.sentence if ending else "")
    return Finding(
        severity="act" if stall.never_goes_on else "note",
        title=stall.sentence,
        explanation=" ".join(filter(None, told)),
        change=change_for(stall),
        lost_ps=end_ps - start_ps,
        blames=BUCKETS,
        confidence=blamed.confidence if blamed is not None else 0.5,
        evidence=(Evidence(signals.host.host, "", start_ps, end_ps, "no step finished"),)
        if end_ps > start_ps
        else (),
        stack=stack,
        fatal=stall.never_goes_on,
    )


def _other_threads(stall: Stall) -> str:
    """Those in the user's own code: one of them may hold what the blamed thread waits for."""
    blamed = stall.blamed.thread if stall.blamed is not None else None
    if stall.blamed is not None and stall.blamed.kind == "deadlock":
        return ""  # they are in its title
    told = []
    for thread in stall.threads:
        stack = stack_of(thread)
        wait = lock_wait(thread, stall.threads) or wait_of(stack)
        if thread is not blamed and stack.users is not None and not stack.is_inside_tensorflow:
            does = f"at {stack.users.place} {wait.words.rstrip(',')}" if wait is not None else ""
            name = thread.name or "another thread"
            told.append(f"{name} {does or f'is at {stack.users.place}'}")
    return f"Meanwhile: {'; '.join(told[:OTHERS_TOLD])}." if told else ""


def _in_window(signals: Signals, stall: Stall) -> tuple[int, int]:
    zero_ns = signals.timeline.window.start_unix_ns
    if zero_ns is None:
        return 0, 0
    bounds = ((ns - zero_ns) * PS_PER_NS for ns in (stall.since_ns, stall.until_ns))
    start_ps, end_ps = (min(max(ps, 0), signals.window_ps) for ps in bounds)
    return start_ps, end_ps


def _of_ending(signals: Signals, ending: Ending) -> Finding:
    at = moment(ending.ns)
    where = f" at {ending.place.place}" if ending.place is not None else ""
    finished = signals.progress is not None and signals.progress.finished
    if ending.reason == StopReason.EXCEPTION:
        title = f"Training failed{where} ({at}): {ending.error}"
        text = f"The process ended with this error.{_op(ending)}"
    elif ending.reason == KILLED:
        title = f"The process was killed at {at}, without a final record"
        text = (
            "It was training up to its last record."
            if not ending.out_of_memory
            else "Its memory was used up at the time: the kernel kills a process that asks for "
            "more."
        )
    else:
        title = f"The process was told to terminate at {at} ({ending.reason.upper()})"
        text = "It was training until then; it was not stuck."
    if signals.endless_data is not None:
        text = f"{text} {signals.endless_data.sentence}."
    return Finding(
        severity=_severity(ending, finished),
        title=title,
        explanation=text + ("" if finished else " No epoch was finished."),
        change=(VALIDATION_STEPS if signals.endless_data.of_validation else STEPS_PER_EPOCH)
        if signals.endless_data is not None
        else change_after(ending),
        confidence=0.9,
        fatal=ending.has_failed,
    )


def _severity(ending: Ending, finished: bool) -> Severity:
    if ending.has_failed:
        return "act"
    return "note" if finished or ending.reason == StopReason.SIGTERM else "consider"


def _op(ending: Ending) -> str:
    if not ending.op:
        return ""
    at = f", defined at {ending.defined_at.place}" if ending.defined_at is not None else ""
    return f" It failed in the op {ending.op}{at}."


# ---------------------------------------------------------------- without


def _of_event_files(signals: Signals) -> Finding | None:
    progress = signals.progress
    if progress is None or progress.finished or signals.console.end is not None:
        return None  # training continued, or its console says how it ended
    if not progress.marks_epochs:
        return None  # nothing says that there should have been more
    silent = _went_silent(progress)
    return Finding(
        severity="consider" if silent else "note",
        title=f"No epoch had finished when this log ended: the run is slow, stuck or dead, and the "
        f"log does not say which{_last_batch(progress)}",
        explanation=_explanation(progress, silent),
        change=ASK_THE_PROCESS,
        confidence=0.6,
    )


def _last_batch(progress: LoggedProgress) -> str:
    ns = progress.last_batch_ns
    return f"; the last batch was logged at {moment(ns)}" if ns is not None else ""


def _went_silent(progress: LoggedProgress) -> bool:
    usual, silence = progress.usual_batch_ps, progress.silence_ps
    return usual is not None and silence is not None and silence > SILENT_FACTOR * max(usual, 1)


def _explanation(progress: LoggedProgress, silent: bool) -> str:
    if progress.batches == 0:
        return (
            f"The event files show training start, but they stop {seconds(progress.lasted_ps)} "
            f'later, without a batch or an epoch. Without update_freq="batch", a healthy first '
            f"epoch looks the same."
        )
    usual = progress.usual_batch_ps
    pace = f", one every {seconds(usual)}" if usual else ""
    were = "batch was" if progress.batches == 1 else "batches were"
    text = f"{progress.batches} {were} logged in {seconds(progress.lasted_ps)}{pace}."
    if silent:
        return (
            f"{text} The last record was written {seconds(progress.silence_ps or 0)} after the "
            f"last of them: in between, training had stopped or the program was doing something "
            f"else."
        )
    return (
        f"{text} The run made progress up to its last record; what happened after that is not in "
        f"the files."
    )
