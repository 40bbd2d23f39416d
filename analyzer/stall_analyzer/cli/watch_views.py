"""The two views of `stall-analyze watch`: a terminal that refreshes, and lines for a log."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator, Sequence
from typing import Protocol, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from stall_analyzer.live.followed_run import RunState
from stall_analyzer.live.state import ProcessState
from stall_analyzer.live.words import costs, how_far, in_a_line, just_now, left
from stall_analyzer.model.format import percent
from stall_analyzer.report.facts import by_size
from stall_analyzer.report.glyphs import cells_per_part
from stall_analyzer.report.palette import BUCKET_COLORS, BUCKET_LETTERS, STATUS_COLORS
from stall_analyzer.report.terminal import Terminal

BAR_WIDTH = 30
BUCKETS_NAMED = 4
INDENT = "  "
LINE_PAUSE_S = 5.0  # in a log, so that a person can still read it
# While nothing changes but the time, such as in a hang over a weekend.
SAME_PAUSE_S = 60.0


class View(Protocol):
    """Where the states are shown."""

    def show(self, states: Sequence[RunState], waiting: str) -> None:
        """Shows the runs in progress; `waiting` is what to say if there is none."""

    def tell(self, line: str) -> None:
        """Prints a line that stays."""

    def close(self) -> None: ...


def view_for(stream: TextIO, no_color: bool, once: bool) -> View:
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")  # a name may not fit the terminal's encoding
    if once or not stream.isatty():
        return LinesView(stream)
    plain = no_color or bool(os.environ.get("NO_COLOR"))
    return TerminalView(
        Console(file=stream, color_system=None if plain else "auto", highlight=False)
    )


# ---------------------------------------------------------------- lines


class LinesView:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._said: dict[str, tuple[float, object]] = {}  # when it was said last, and its gist

    def show(self, states: Sequence[RunState], waiting: str) -> None:
        if not states:
            self._say_if_new("", waiting, waiting)
        for run in states:
            for process in run.processes:
                name = ", ".join(filter(None, (run.title, process.name)))
                self._say_if_new(name, _essence(process), f"{name}: {in_a_line(process)}")
            if run.stall:
                name = run.title
                self._say_if_new(f"{name} stalls", "", f"{name}: {run.stall}")

    def tell(self, line: str) -> None:
        print(line, file=self._stream, flush=True)

    def close(self) -> None:
        pass

    def _say_if_new(self, name: str, about: object, line: str) -> None:
        now_s = time.monotonic()
        said_s, before = self._said.get(name, (-SAME_PAUSE_S, None))
        pause_s = SAME_PAUSE_S if about == before else LINE_PAUSE_S
        is_waiting = name == "" and about == before
        if now_s - said_s >= pause_s and not is_waiting:
            self._said[name] = now_s, about
            self.tell(line)


def _essence(state: ProcessState) -> object:
    """What changes when something happens, but not when only time passes."""
    doing = None if state.doing is None else (state.doing.account, state.doing.name)
    return how_far(state), doing, state.is_late


# ---------------------------------------------------------------- terminal


class TerminalView:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._terminal = Terminal(console)
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        self._live.start()

    def show(self, states: Sequence[RunState], waiting: str) -> None:
        lines = [line for run in states for line in self._run(run)]
        shown = lines or [self._terminal.text(waiting, "dim")]
        self._live.update(Group(*shown), refresh=True)

    def tell(self, line: str) -> None:
        self._console.print(self._terminal.text(line))

    def close(self) -> None:
        self._live.stop()

    def _run(self, run: RunState) -> Iterator[Text]:
        yield self._terminal.text(run.title, "bold")
        for process in run.processes:
            yield from self._process(process)
        if run.stall:
            yield self._text(run.stall, f"bold {STATUS_COLORS['stuck']}")

    def _process(self, process: ProcessState) -> Iterator[Text]:
        late = " (late)" if process.is_late else ""
        name = f"{process.name}{late}: " if process.name or late else ""
        said = ", ".join(filter(None, (how_far(process), costs(process), left(process))))
        yield self._text(f"{name}{said}", "bold" if process.is_late else "")
        if sum(process.spent_ps.values()):
            yield self._bar(process)
        if now := just_now(process):
            yield self._text(now, "dim")

    def _bar(self, process: ProcessState) -> Text:
        whole_ps, spent = sum(process.spent_ps.values()), by_size(process.spent_ps)
        cells = cells_per_part(dict(spent), BAR_WIDTH)
        parts = [self._terminal.text(INDENT)]
        for bucket, count in cells.items():
            colors = f"black on {BUCKET_COLORS[bucket]}"
            parts.append(self._terminal.text(BUCKET_LETTERS[bucket] * count, colors))
        for bucket, ps in spent[:BUCKETS_NAMED]:
            parts.append(self._terminal.text(f"  {bucket} {percent(ps, whole_ps)}", "dim"))
        return Text.assemble(*parts)

    def _text(self, string: str, style: str) -> Text:
        return self._terminal.text(f"{INDENT}{string}", style)
