"""The verdict on a run that ended, or was ended, too early."""

from __future__ import annotations

from pathlib import PurePath

from stall_analyzer.captures.capture_format import StopReason
from stall_analyzer.model.causes import bucket_of
from stall_analyzer.model.findings import Verdict
from stall_analyzer.model.format import moment
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.signals.ending.process_end import KILLED
from stall_analyzer.signals.ending.stall import SLOW, SLOW_NOT_STUCK, Stall, after_steps
from stall_analyzer.signals.signals import Signals

# A run that was ended from outside was slow if one of these took more than half of its time.
SLOWING: tuple[Bucket, ...] = ("input", "host", "memory", "communication")
MOST_OF_IT = 0.5


def is_dead(signals: Signals) -> bool:
    """Whether it ended too early and before the first epoch was over, or with an error."""
    ending, progress = signals.ending, signals.progress
    if ending is None or not ending.is_early:
        return False
    finished = progress is not None and progress.finished
    return not finished or ended_in_a_wait(signals) or ending.has_failed


def ended_in_a_wait(signals: Signals) -> bool:
    """A user who stopped it because it was stuck is not asking about its first epoch."""
    return signals.stall is not None and signals.stall.is_long


def dead(signals: Signals) -> Verdict:
    ending, stall = signals.ending, signals.stall
    assert ending is not None
    steps = signals.capture_steps
    where = after_steps(steps)
    if ending.reason == StopReason.EXCEPTION:
        place = f" at {ending.place.place}" if ending.place is not None else ""
        how = "failed" if ending.has_failed else "ended"
        what = f"it {how}{place} with {ending.error}"
    elif ending.reason == KILLED:
        what = "it ran out of memory" if ending.out_of_memory else "the process was killed"
    else:
        what = f"the process was told to terminate ({ending.reason.upper()})"
    slow = f" {_before_that(stall)}." if stall is not None else ""
    if not slow:
        slow = _why_it_could_not_end(signals)
    bucket = ending.bucket
    if bucket == "unknown" and stall is not None:
        bucket = stall.bucket
        if stall.state == SLOW and bucket in ("compute", "unknown") and _is_compiled(signals):
            bucket = "compile"
    elif bucket == "unknown" and signals.endless_data is not None:
        bucket = "input"
    if not slow and bucket == "unknown" and (slowed := _what_slowed_it(signals)) is not None:
        bucket = slowed
        part = signals.with_share(_spent_on(signals, slowed))
        line = _costliest_line(signals, slowed)
        slow = f" Until then it was slow, not stuck: {part} went to {slowed}{line}."
    return Verdict(
        "dead",
        bucket,
        f"Dead since {moment(ending.ns)} ({where}): {what}.{slow}",
        0.9,
    )


def _before_that(stall: Stall) -> str:
    """A run that is dead is no longer slow."""
    is_slow = stall.state == SLOW and stall.sentence.startswith(SLOW_NOT_STUCK)
    if not is_slow:
        return stall.sentence
    return f"Before that, it was slow, not stuck{stall.sentence.removeprefix(SLOW_NOT_STUCK)}"


def _is_compiled(signals: Signals) -> bool:
    """A long call of a step may compile it, which only clocks and traces show."""
    return signals.share(_spent_on(signals, "compile")) > MOST_OF_IT


def _what_slowed_it(signals: Signals) -> Bucket | None:
    """What took most of the time until it was stopped from outside, if it recurs in every step."""
    most = max(SLOWING, key=lambda bucket: _spent_on(signals, bucket))
    return most if signals.share(_spent_on(signals, most)) > MOST_OF_IT else None


def _costliest_line(signals: Signals, bucket: Bucket) -> str:
    """The costliest line of the user's own code; empty if none was seen."""
    line = next((line for line in signals.code_lines if line.bucket == bucket), None)
    if line is None:
        return ""
    return f", most of it in {line.function} ({PurePath(line.path).name}:{line.line})"


def _spent_on(signals: Signals, bucket: Bucket) -> int:
    return sum(ps for cause, ps in signals.causes_ps.items() if bucket_of(cause) == bucket)


def _why_it_could_not_end(signals: Signals) -> str:
    endless = signals.endless_data
    return f" {endless.sentence}." if endless is not None else ""
