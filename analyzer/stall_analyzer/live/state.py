"""How far a training process is, and where its time goes, in the ledger's terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from stall_analyzer.align.align import align
from stall_analyzer.attribute.attribute import attribute
from stall_analyzer.captures.capture_format import Account, MarkName
from stall_analyzer.captures.capture_records import BookItem, MarkRecord
from stall_analyzer.captures.stack_frames import Frame
from stall_analyzer.diagnose.stood_still import with_time_stood_still
from stall_analyzer.live.followed_process import Moment
from stall_analyzer.model.books import Books
from stall_analyzer.model.causes import bucket_of
from stall_analyzer.model.event_log import Capture, EventLog
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import Window
from stall_analyzer.model.units import NS_PER_S, PS_PER_NS, Bools
from stall_analyzer.signals.ending.process_end import ending_of
from stall_analyzer.signals.ending.stall import Stall
from stall_analyzer.signals.host.user_lines import code_lines, code_stacks

# The pace is that of the last half minute: long enough for a few steps, short enough to be current.
RECENT_NS = 30 * NS_PER_S
LEAST_STEPS = 3  # needed to know the pace
# After no step for as long as three usual ones take, the pace says nothing about the future.
PAUSES = 3
# The books are written each second, and read each second.
STALE_NS = 2 * NS_PER_S
# How much more of the time a late worker must lose than any other, to tell it from bad luck.
LATER_SHARE = 0.1
# What is surely the process's own work. Plain Python may be waiting for the other workers.
OWN_BUCKETS: tuple[Bucket, ...] = ("input", "compile", "memory")
OWN_CAUSES = ("host.callback", "host.checkpoint")


@dataclass(frozen=True)
class ProcessState:
    """One process of a run, right now."""

    name: str = ""  # the name of its task; empty if there is only one process
    last_mark: str = ""  # one of capture_format.MarkName; empty if training has not begun
    has_ended: bool = False
    epoch: int | None = None  # from 1; None if none was marked
    step: int = 0  # how many ended in the epoch
    steps: int | None = None  # how many the epoch has, if known
    step_ps: int | None = None  # how long a step takes now
    left_ps: int | None = None  # left in the epoch
    since_step_ps: int | None = None  # or since the beginning, if there was no step
    silent_ps: int = 0  # since its last record
    causes_ps: Mapping[str, int] = field(default_factory=dict)  # of the epoch so far
    line: str = ""  # the costliest line of the user's own code; empty if not known
    doing: BookItem | None = None  # what it has been doing for a second or more
    is_late: bool = False  # others wait for it

    @property
    def spent_ps(self) -> Mapping[Bucket, int]:
        """Time spent in the epoch so far; only buckets that occur."""
        buckets: dict[Bucket, int] = {}
        for cause, ps in self.causes_ps.items():
            buckets[bucket_of(cause)] = buckets.get(bucket_of(cause), 0) + ps
        return buckets

    @property
    def costliest(self) -> Bucket | None:
        """The costliest bucket of the epoch so far."""
        return max(self.spent_ps, key=lambda bucket: self.spent_ps[bucket], default=None)

    @property
    def trains(self) -> bool:
        return self.last_mark not in ("", MarkName.FIT_END) and not self.has_ended


def state_of(
    capture: Capture, moment: Moment, now_ns: int, stall: Stall | None = None
) -> ProcessState:
    """`stall`: what the looks at the process say, if nothing moves."""
    task, marks, books = capture.environment.task, capture.marks, capture.books
    known = ProcessState(
        name="" if task is None else str(task),
        last_mark=marks[-1].what if marks else "",
        has_ended=ending_of(capture, now_ns) is not None,
        silent_ps=max(now_ns - capture.last_ns, 0) * PS_PER_NS,
    )
    if not marks:
        return known
    begin = _begin(marks)
    known = replace(known, epoch=None if begin.epoch is None else begin.epoch + 1)
    known = replace(known, steps=_steps(marks, begin), doing=_doing(moment, stall))
    if books is None:
        return known
    mine = books.begin_ns >= begin.ns
    undecided_ns = moment.undecided_ns if stall is None else None
    until_ns = undecided_ns or int(books.end_ns[-1])
    known = replace(
        known,
        step=int(books.steps[mine].sum()),
        step_ps=_step_ps(books, mine),
        since_step_ps=max(now_ns - max(moment.last_step_ns, begin.ns), 0) * PS_PER_NS,
        causes_ps=_causes_ps(capture, begin, until_ns, stall),
    )
    line = _line(capture, known.costliest, begin, until_ns)
    return replace(known, left_ps=_left_ps(known, marks), line=line)


def _doing(moment: Moment, stall: Stall | None) -> BookItem | None:
    """A call of the step that waits for its batch is doing nothing else."""
    doing = moment.doing
    if doing is None or stall is None or stall.bucket != "input" or doing.account != Account.STEP:
        return doing
    return replace(doing, account=Account.WAIT, name="", where="")


def _line(capture: Capture, bucket: Bucket | None, begin: MarkRecord, until_ns: int) -> str:
    """`train.py:25 load`: the user's line that costs the most in this bucket. Only first epochs are
    sampled, and what was seen there holds for later ones."""
    seen = capture.stacks.stacks if capture.stacks is not None else ()
    start_ns = min((begin.ns, *(stack.begin_ns for stack in seen)))
    window = Window(0, (until_ns - start_ns) * PS_PER_NS, "", "", clock_unix_ns=start_ns)
    lines = code_lines(code_stacks(capture, window), {})
    line = next((line for line in lines if line.bucket == bucket), None)
    if line is None:
        return ""
    frame = Frame(line.path, line.line, line.function)
    return f"{frame.place} {frame.name}"


def _begin(marks: Sequence[MarkRecord]) -> MarkRecord:
    """When the current epoch began, or the fit if no epoch is marked."""
    begins = [mark for mark in marks if mark.what == MarkName.EPOCH_BEGIN]
    return begins[-1] if begins else marks[0]


def _steps(marks: Sequence[MarkRecord], begin: MarkRecord) -> int | None:
    """As many as the fit says or, failing that, as many as the previous epoch had."""
    told = next((mark.steps for mark in marks if mark.what == MarkName.FIT_BEGIN), None)
    before = [mark.step for mark in marks if mark.what == MarkName.EPOCH_BEGIN]
    if told or len(before) < 2 or begin.step is None or before[-2] is None:
        return told
    return begin.step - before[-2] or None


def _causes_ps(
    capture: Capture, begin: MarkRecord, until_ns: int, stall: Stall | None
) -> Mapping[str, int]:
    """The ledger of the current epoch, as if it were the first."""
    marks = tuple(mark for mark in capture.marks if mark.ns >= begin.ns)
    so_far = replace(capture, marks=marks, last_ns=max(until_ns, begin.ns))
    events = EventLog({}, {}, None, None, None, None, 0, captures=(so_far,))
    timeline = align((), events)
    ledger = attribute(timeline)[0].ledger
    return with_time_stood_still(ledger, stall, timeline.window.start_unix_ns).causes_ps


# ---------------------------------------------------------------- time left


def _step_ps(books: Books, mine: Bools) -> int | None:
    """The time of recent steps, without those for which a graph was built."""
    traced = (books.spent(Account.TRACE) + books.spent(Account.RETRACE)) > 0
    rows = np.flatnonzero(mine & (books.steps > 0) & ~traced)
    recent = rows[books.end_ns[rows] > books.end_ns[rows[-1:]].max(initial=0) - RECENT_NS]
    rows = recent if books.steps[recent].sum() >= LEAST_STEPS else rows[-LEAST_STEPS:]
    count = int(books.steps[rows].sum())
    lasted_ns = int((books.end_ns - books.begin_ns)[rows].sum())
    return lasted_ns * PS_PER_NS // count if count >= LEAST_STEPS else None


def _left_ps(state: ProcessState, marks: Sequence[MarkRecord]) -> int | None:
    """Without what comes after the steps, unless an earlier epoch has shown how long that takes."""
    if state.steps is None or state.step_ps is None or state.last_mark != MarkName.EPOCH_BEGIN:
        return None
    since_ps, left = state.since_step_ps or 0, state.steps - state.step
    if left < 0 or since_ps > PAUSES * state.step_ps + STALE_NS * PS_PER_NS:
        return None
    return max(left * state.step_ps - since_ps, 0) + _after_steps_ps(marks)


def _after_steps_ps(marks: Sequence[MarkRecord]) -> int:
    """How long validation and the end of the previous epoch took."""
    *_, begin = (n for n, mark in enumerate(marks) if mark.what == MarkName.EPOCH_BEGIN)
    ended = (MarkName.VALIDATION_BEGIN, MarkName.EPOCH_END)
    after = [mark.ns for mark in marks[:begin] if mark.what in ended]
    return (marks[begin].ns - min(after)) * PS_PER_NS if after else 0


# ---------------------------------------------------------------- several processes


def with_late_one(states: Sequence[ProcessState]) -> tuple[ProcessState, ...]:
    """Marks the process that the others wait for, if there is one without doubt."""
    training = [state for state in states if state.trains]
    late = _furthest_behind(training) or _with_most_of_its_own(training)
    return tuple(replace(state, is_late=state is late) for state in states)


def _furthest_behind(training: Sequence[ProcessState]) -> ProcessState | None:
    in_order = sorted(training, key=_done)
    if len(in_order) < 2 or in_order[0].step_ps is None:
        return None
    (epoch, step), (next_epoch, next_step) = map(_done, in_order[:2])
    stale = STALE_NS * PS_PER_NS // max(in_order[1].step_ps or 1, 1)  # steps not yet recorded
    is_behind = epoch == next_epoch and next_step - step > 1 + stale
    return in_order[0] if is_behind else None


def _done(state: ProcessState) -> tuple[int, int]:
    return state.epoch or 0, state.step


def _with_most_of_its_own(training: Sequence[ProcessState]) -> ProcessState | None:
    """All take equally long for a step: the one that the others hold up the least is late."""
    in_order = sorted(training, key=_own_ps, reverse=True)
    if len(in_order) < 2:
        return None
    more_ps = _own_ps(in_order[0]) - _own_ps(in_order[1])
    whole_ps = sum(in_order[0].spent_ps.values())
    return in_order[0] if more_ps > LATER_SHARE * whole_ps > 0 else None


def _own_ps(state: ProcessState) -> int:
    own = (*OWN_BUCKETS, *OWN_CAUSES)
    return sum(ps for cause, ps in state.causes_ps.items() if {cause, bucket_of(cause)} & {*own})
