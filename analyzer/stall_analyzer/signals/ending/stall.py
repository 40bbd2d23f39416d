"""The time without progress at the end of a capture, and the sentence about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from stall_analyzer.captures.look_records import ThreadStack
from stall_analyzer.captures.stack_frames import Frame, frame_of
from stall_analyzer.model.format import moment, seconds
from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import PS_PER_NS

if TYPE_CHECKING:
    from stall_analyzer.signals.ending.scene import Blamed

STUCK, ENDLESS, SLOW, UNSURE = "stuck", "endless", "slow", "unsure"
SLOW_NOT_STUCK = "Slow, not stuck"


def after_steps(count: int) -> str:
    """A number of steps, since logs and traces number the first one 0."""
    if not count:
        return "before the first step"
    return "after 1 step" if count == 1 else f"after {count:,} steps"


def _users_line(frames: Iterable[Frame | None]) -> Frame | None:
    """The innermost line of the user's own code."""
    return next((frame for frame in frames if frame is not None and frame.is_users), None)


@dataclass(frozen=True)
class Stall:
    """The time without progress at the end of a capture."""

    state: str  # STUCK, ENDLESS, SLOW or UNSURE
    since_ns: int
    until_ns: int  # the last time that it is known about
    step: int  # steps that had finished
    why: str  # in words: what shows the state
    blamed: Blamed | None
    threads: tuple[ThreadStack, ...] = ()  # all Python threads, as they were last seen
    went_on: bool = False  # training continued after it
    is_long: bool = False  # longer than the limit for such a pause
    attached: bool = False  # it was looked at from outside: nothing is known about steps

    @property
    def never_goes_on(self) -> bool:
        return self.state in (STUCK, ENDLESS) and self.blamed is not None

    def stands_at(self, frames: Sequence[Frame]) -> bool:
        """Whether these frames are where training never continues: at that line of the user's code,
        or in the function whose loop has no end."""
        mine = _users_line(map(frame_of, self.blamed.stack)) if self.blamed is not None else None
        other = _users_line(frames)
        if not self.never_goes_on or mine is None or other is None or mine.path != other.path:
            return False
        same_loop = self.state == ENDLESS and mine.function == other.function
        return same_loop or mine.line == other.line

    @property
    def lasted_ps(self) -> int:
        return (self.until_ns - self.since_ns) * PS_PER_NS

    @property
    def bucket(self) -> Bucket:
        return self.blamed.bucket if self.blamed is not None else "unknown"

    @property
    def sentence(self) -> str:
        """Without its period."""
        if self.attached:
            return self._as_seen_from_outside
        place = after_steps(self.step)
        at = moment(self.since_ns)
        if self.never_goes_on and self.blamed is not None:
            since = f"{self.state.capitalize()} since {at} ({place})"
            return f"{since}: {self._what_never_goes_on(self.blamed)}"
        lasted = f"step had finished for {seconds(self.lasted_ps)} (since {at}, {place})"
        if self.went_on:
            lasted = f"step finished for {seconds(self.lasted_ps)} (from {at} on, {place})"
        if self.state == SLOW:
            return f"{SLOW_NOT_STUCK}: no {lasted}, and {self.why}"
        does = f": {self._does}" if self._does else ""
        return f"No {lasted}{does}; {self._unsure}"

    @property
    def _unsure(self) -> str:
        return f"it is not known whether the process is stuck, because {self.why}"

    @property
    def _does(self) -> str:
        if self.blamed is None or not self.blamed.waits_in:
            return ""
        return f"{self.blamed.subject} {self.blamed.waits_in.rstrip(',')}"

    @property
    def _as_seen_from_outside(self) -> str:
        if self.never_goes_on and self.blamed is not None:
            since = f"{self.state.capitalize()} since {moment(self.since_ns)} or earlier"
            return f"{since}: {self._what_never_goes_on(self.blamed)}"
        if self.state == SLOW:
            return f"Not stuck: {self.why}"
        known = f"{self._does}; {self._unsure}" if self._does else self._unsure
        return f"{known[0].upper()}{known[1:]}"

    def _what_never_goes_on(self, reason: Blamed) -> str:
        if self.state == ENDLESS:
            return f"{reason.subject} {reason.waits_in}"
        never = " and will never continue" if reason.kind not in ("peers", "deadlock") else ""
        return f"{reason.subject} {reason.waits_in}{never}"
