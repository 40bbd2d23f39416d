"""The console says how the job ended.

What it finds
An error that ended the training, or a message from the shell or the scheduler that says what ended
it: a time limit, a preemption, a failed machine, a signal, an exit code.

Why it stalls
Event files just stop; they do not say whether the run is still going, has hung or has ended.

How it is measured
The last traceback on the console, if no training continues after it, with its error message and the
innermost line of the user's own code; or the last message from Slurm, the shell or the runtime. A
console counts only if its times match the run's event files and no other run could have written it.
A capture (StallCallback) knows more and takes precedence.

Example
Slurm: "CANCELLED AT 2026-11-17T05:17:29 DUE TO TIME LIMIT", at step 812 of 1,000 of epoch 1.

What to do
Fix the error where it was raised. For a time limit, ask for more time, or save checkpoints and
continue from the last one.

Blind spots
A console log that was copied no longer shows when its last line was written. The output of several
workers in one file is read as if it came from one.
"""

from __future__ import annotations

from stall_analyzer.model.console_log import PythonError
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.ending.console_end import ConsoleEnd
from stall_analyzer.signals.signals import Signals

ID = "ST511"
BUCKET = "unknown"


# The program itself did not fail: another job can continue it.
FROM_OUTSIDE = ("time_limit", "preempted", "node_failed", "cancelled", "told_to_end")
BY_HAND = "KeyboardInterrupt"


def check(signals: Signals) -> Finding | None:
    console = signals.console
    if console.end is not None:
        return None if console.end.out_of_memory else _of_end(signals, console.end)
    return _of_survived(console.earlier_error) if console.earlier_error is not None else None


def _of_end(signals: Signals, end: ConsoleEnd) -> Finding:
    finished = signals.progress is not None and signals.progress.finished
    far = f" By then, the job had reached {end.progress.words}." if end.progress is not None else ""
    return Finding(
        severity="consider" if finished else "act",
        title=f"The job ended early: {end.words}",
        explanation=f"The job's console ends with this message ({end.line.place}).{far}",
        change=_change(end),
        confidence=0.85,
        fatal=not finished,
    )


def _change(end: ConsoleEnd) -> Change:
    if end.kind in FROM_OUTSIDE or end.error == BY_HAND:
        return Change(
            "Ask for more time, and save checkpoints, so that a new job can continue where this "
            "one stopped."
            if end.kind == "time_limit"
            else "Save checkpoints, so that a new job can continue where this one stopped.",
            "model.fit(data)",
            "model.fit(data, callbacks=[tf.keras.callbacks.BackupAndRestore(folder)])",
        )
    if end.kind == "killed":
        return Change(
            "Check whether memory ran out: dmesg, sacct or kubectl describe will show it."
        )
    where = f" at {end.place.place}" if end.place is not None else ""
    return Change(f"Fix what failed{where}; look for the full error on the console.")


def _of_survived(error: PythonError) -> Finding:
    return Finding(
        severity="note",
        title=f"An error was printed, and the job continued: {error.text}",
        explanation=f"The traceback is on the console ({error.line.place}), and the job continued "
        f"after it.",
        change=Change("Check whether the program is meant to continue after this error."),
        confidence=0.6,
    )
