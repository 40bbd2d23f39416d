"""The console says how the job ended.

What it finds
An error that ended the training, or the word of a shell or scheduler that did: a time limit, a
preemption, a failed machine, a signal, an exit code.

Why it stalls
Event files only end; whether the run still goes on, hangs or is gone they do not say.

How it is measured
The last traceback on the console, if no training goes on after it, with the line of it that says
what went wrong and the innermost line of the user's own code; or the last words of Slurm, the shell
or the runtime. A console counts only if its times fit the run's event files, and if no other run
could have written it. A capture (StallCallback) knows better, and comes first.

Example
Slurm: "CANCELLED AT 2026-11-17T05:17:29 DUE TO TIME LIMIT", at step 812 of 1,000 of epoch 1.

What to do
Fix the error where it was raised. For a time limit: ask for more time, or save checkpoints and go
on from the last one.

Blind spots
A console that was copied has lost the time of its last line. Output of several workers in one file
is read as one.
"""

from __future__ import annotations

from stall_analyzer.model.console_log import PythonError
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.ending.console_end import ConsoleEnd
from stall_analyzer.signals.signals import Signals

ID = "ST511"
BUCKET = "unknown"


OF_THE_SCHEDULER = ("time_limit", "preempted", "node_failed", "cancelled", "told_to_end")


def check(signals: Signals) -> Finding | None:
    console = signals.console
    if console.end is not None:
        return None if console.end.out_of_memory else _of_end(signals, console.end)
    return _of_survived(console.earlier_error) if console.earlier_error is not None else None


def _of_end(signals: Signals, end: ConsoleEnd) -> Finding:
    finished = signals.progress is not None and signals.progress.finished
    far = f" It had reached {end.progress.words}." if end.progress is not None else ""
    return Finding(
        severity="consider" if finished else "act",
        title=f"The job ended early: {end.words}",
        explanation=f"The console of the job ends with this ({end.line.place}).{far}",
        change=_change(end),
        confidence=0.85,
        fatal=not finished,
    )


def _change(end: ConsoleEnd) -> Change:
    if end.kind in OF_THE_SCHEDULER:
        return Change(
            "Ask for more time, and save checkpoints from which a new job goes on.",
            "model.fit(data)",
            "model.fit(data, callbacks=[tf.keras.callbacks.BackupAndRestore(folder)])",
        )
    if end.kind == "killed":
        return Change("Check whether memory was short: dmesg, sacct or kubectl describe tell.")
    where = f" at {end.place.place}" if end.place is not None else ""
    return Change(f"Fix what failed{where}: the whole text is on the console.")


def _of_survived(error: PythonError) -> Finding:
    return Finding(
        severity="note",
        title=f"An error was printed, and the job went on: {error.text}",
        explanation=f"The traceback is on the console ({error.line.place}), and was not the end.",
        change=Change("Check whether the program means to go on after this error."),
        confidence=0.6,
    )
