"""A state in words: `epoch 1, step 56 of 200, 71% waiting for input`."""

from __future__ import annotations

from pathlib import PurePosixPath

from stall_analyzer.captures.capture_format import Account, MarkName
from stall_analyzer.captures.capture_records import BookItem
from stall_analyzer.captures.stack_frames import INSTALLED, STANDARD
from stall_analyzer.live.state import PAUSES, ProcessState
from stall_analyzer.model.causes import bucket_of
from stall_analyzer.model.format import percent, seconds
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.units import PS_PER_NS, PS_PER_S

GOES_TO: dict[Bucket, str] = {
    "input": "waiting for input",
    "compile": "building graphs",
    "memory": "waiting for memory",
    "numerics": "computing without learning",
    "compute": "computing",
    "communication": "waiting for other workers",
    "host": "in Python on the host",
    "profiler": "for the profiler and the capture",
    "unknown": "not known",
}
# Used if such a cause is most of its bucket.
GOES_TO_CAUSE = {"host.callback": "in callbacks", "host.checkpoint": "saving"}
# {} is the name in the books, such as "ModelCheckpoint.on_epoch_end".
DOES = {
    Account.TRACE: "tracing {}",
    Account.RETRACE: "tracing {} again",
    Account.STEP: "in the compiled function {}",
    Account.COLLECTIVE: "waiting for other workers",
    Account.INPUT: "waiting for a batch",
    Account.WAIT: "waiting for a batch",
    Account.ITERATOR: "creating an iterator",
    Account.CALLBACK: "in {}",
    Account.LOGGING: "in {}",
    Account.SIDE: "in predict or evaluate ({})",
    Account.SAVE: "saving {}",
    Account.CAPTURE: "doing the capture's own work",
    Account.GC: "collecting garbage",
}
IN_PYTHON = "in Python"
# The books are written each second, so anything shorter is not a pause.
PAUSE_PS = 5 * PS_PER_S
SILENT_PS = 10 * PS_PER_S
# From here on, whole minutes are precise enough.
MINUTES_FROM_S = 90


def how_far(state: ProcessState) -> str:
    """`epoch 1, step 56 of 200`"""
    if not state.last_mark:
        return "ended without training" if state.has_ended else "training has not begun"
    parts = [] if state.epoch is None else [f"epoch {state.epoch}"]
    if state.has_ended or state.last_mark == MarkName.FIT_END:
        parts.append("ended" if state.has_ended else "done training; the program is still running")
    elif state.last_mark == MarkName.VALIDATION_BEGIN:
        parts.append("validating")
    elif state.last_mark in (MarkName.VALIDATION_END, MarkName.EPOCH_END):
        parts.append("at its end")
    else:
        of = f" of {state.steps:,}" if state.steps else ""
        parts.append(f"step {state.step:,}{of}" if state.step else "no step yet")
    return ", ".join(parts)


def costs(state: ProcessState) -> str:
    """`71% waiting for input (train.py:25 load)`; empty if nothing is booked."""
    whole_ps = sum(state.spent_ps.values())
    most = state.costliest
    if most is None or not whole_ps or not state.trains:
        return ""
    inside = {cause: ps for cause, ps in state.causes_ps.items() if bucket_of(cause) == most}
    words = GOES_TO_CAUSE.get(max(inside, key=lambda cause: inside[cause]), GOES_TO[most])
    line = f" ({state.line})" if state.line else ""
    return f"{percent(state.spent_ps[most], whole_ps)} {words}{line}"


def left(state: ProcessState) -> str:
    """`about 3 min left in this epoch`; empty if that is not known."""
    if state.left_ps is None or not state.trains:
        return ""
    return f"about {_roughly(state.left_ps)} left in this epoch"


def _roughly(ps: int) -> str:
    whole_s = round(ps / PS_PER_S)
    if whole_s < MINUTES_FROM_S:
        return f"{whole_s} s"
    minutes = round(whole_s / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def just_now(state: ProcessState) -> str:
    """`tracing train_step for 12 s; the last step ended 14 s ago`; empty while steps end."""
    if not state.trains:
        return ""
    parts = [_doing(state.doing)] if state.doing is not None else []
    since_ps = state.since_step_ps or 0
    if since_ps >= max(PAUSE_PS, PAUSES * (state.step_ps or 0)):
        ago = seconds(since_ps)
        parts.append(f"the last step ended {ago} ago" if state.step else f"no step for {ago}")
    if state.silent_ps >= SILENT_PS:
        parts.append(f"nothing heard from the process for {seconds(state.silent_ps)}")
    return "; ".join(parts)


def _doing(item: BookItem) -> str:
    does = DOES.get(item.account, IN_PYTHON).format(item.name)
    return f"{does}{_place(item.where)} for {seconds(item.spent_ns * PS_PER_NS)}"


def _place(where: str) -> str:
    """Only in the user's own code; places in libraries would only make the line longer."""
    is_users = where and not INSTALLED.search(where) and not STANDARD.search(where)
    return f" ({PurePosixPath(where).name})" if is_users else ""


def in_a_line(state: ProcessState) -> str:
    """The whole state in one line."""
    late = "the others are waiting for it" if state.is_late else ""
    said = ", ".join(filter(None, (how_far(state), costs(state), left(state))))
    return "; ".join(filter(None, (said, just_now(state), late)))
