"""A captured run in progress: its processes, each look at them, and a verdict when it is over."""

from __future__ import annotations

from stall_analyzer.captures.capture_reader import those_that_count
from stall_analyzer.discover.attempts import writer_of
from stall_analyzer.live.followed_process import FollowedProcess, Moment
from stall_analyzer.live.state import ProcessState, state_of, with_late_one
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import Run
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.report.facts import shown_name
from stall_analyzer.signals.ending.stall import Stall
from stall_analyzer.signals.ending.stalled import stall_of, stall_of_run

# For this long, nobody wonders why no step ends.
LONG_PS = 20 * PS_PER_S


@dataclass(frozen=True)
class RunState:
    """A run, right now."""

    run: Run
    processes: tuple[ProcessState, ...]  # the one that leads the others first
    stall: str = ""  # what the looks at it say, if nothing has moved for a long time

    @property
    def title(self) -> str:
        """A run that is the log directory itself has no name there, so its folder is used."""
        return shown_name(self.run.name, self.run.attempt, self.run.folder)

    @property
    def trains(self) -> bool:
        return any(process.trains for process in self.processes)

    @property
    def is_over(self) -> bool:
        """It has finished training, or ended without; the program may still be running."""
        over = all(process.has_ended for process in self.processes)
        return over or (not self.trains and any(p.last_mark for p in self.processes))


class FollowedRun:
    def __init__(self, run: Run) -> None:
        self.run = run
        self._processes: dict[tuple[str, int | None], FollowedProcess] = {}
        self.found(run)

    def found(self, run: Run) -> None:
        """The run was found again, perhaps with more files."""
        self.run = run
        for file in captured_files(run):
            writer = writer_of(file)
            process = (file, None) if writer is None else writer.process
            self._processes.setdefault(process, FollowedProcess()).follow(file)

    def read_new(self) -> None:
        for process in self._processes.values():
            process.read_new()

    def state(self, now_ns: int) -> RunState:
        looks = [
            (process.capture(now_ns), process.moment()) for process in self._processes.values()
        ]
        moments = {id(capture): moment for capture, moment in looks}
        captures = those_that_count([capture for capture, _ in looks])
        states = tuple(
            state_of(capture, moment, now_ns, _stall_of(capture, captures, moment))
            for capture in captures
            for moment in (moments[id(capture)],)
        )
        states = with_late_one(states) if len(states) > 1 else states
        return RunState(self.run, states, _stall(captures, states))


def captured_files(run: Run) -> list[str]:
    paths = [file.path for file in run.event_files]
    return [path for path in paths if (writer := writer_of(path)) and writer.captures]


def _stall_of(capture: Capture, captures: tuple[Capture, ...], moment: Moment) -> Stall | None:
    """Used when only the looks can say what a call of the step is doing."""
    return None if moment.undecided_ns is None else stall_of(capture, captures)


def _stall(captures: tuple[Capture, ...], states: tuple[ProcessState, ...]) -> str:
    """Steps may have ended since the last look; the books tell."""
    moves = any((p.since_step_ps or 0) < LONG_PS for p in states if p.trains)
    stall = None if moves else stall_of_run(captures)
    return f"{stall.sentence}." if stall is not None and stall.lasted_ps >= LONG_PS else ""
