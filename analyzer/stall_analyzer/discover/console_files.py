"""The console of a job next to its logs: which files may be one, and which run they belong to.

A file in the run's own folder belongs to the run. A file in a folder above, up to the one that
contains the log directory, belongs to a run if its name says so, or if there is no other run below
that folder, and no file that the run's name is in: then the others are those of other runs, which
need not be below the log directory. Nothing is searched for this: each folder on the way to a run
is looked at once, without its other branches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from stall_analyzer.discover.attempts import Attempt, writer_of
from stall_analyzer.errors import UnreadableFile, UsageError
from stall_analyzer.files import files
from stall_analyzer.files.listing import Folder
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import ConsoleFile, Run

CONSOLE_NAMES = (".out", ".err", ".log")  # includes nohup.out and slurm-1.out
EVENT_FILE = "tfevents"  # host names may end in .out
MOST_FILES = 24  # in one folder: if there are hundreds, they do not belong to a single run
SHORTEST_NAME = 3  # a name like "a" would match by chance

PathParts = tuple[str, ...]


@dataclass(frozen=True)
class Beside:
    """A folder on the way to a run that contains consoles."""

    parts: PathParts | None  # from the logdir; None for the folder that contains the logdir
    consoles: tuple[ConsoleFile, ...]

    def is_above(self, parts: PathParts) -> bool:
        return self.parts is None or parts[: len(self.parts)] == self.parts


@dataclass(frozen=True)
class FoundConsoles:
    """The consoles of one run: in its own folder, and in each folder above."""

    own: tuple[ConsoleFile, ...] = ()
    above: tuple[Beside, ...] = ()


@dataclass(frozen=True, eq=False)
class FoundRun:
    """A run's folder, and a function that makes its runs (one for each attempt)."""

    parts: PathParts
    consoles: FoundConsoles
    runs: Callable[[tuple[ConsoleFile, ...]], Iterator[Run]]

    def waits(self, crowded: set[PathParts | None], here: PathParts) -> bool:
        """Whether another run may still be found below one of the folders above."""
        return any(b.parts not in crowded and b.is_above(here) for b in self.consoles.above)

    def settled(self, crowded: set[PathParts | None]) -> Iterator[Run]:
        own = {c.path: replace(c, is_own=True) for c in self.consoles.own}
        alone = [
            b
            for b in self.consoles.above
            if b.parts not in crowded and all(c.path not in own for c in b.consoles)
        ]
        shared = {c.path: c for beside in alone for c in beside.consoles}
        return self.runs(tuple((shared | own).values()))


class Surroundings:
    """Remembers the consoles in the folders that lead to the current place of a walk."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._path: dict[PathParts, Beside] = {}
        self._outside: Beside | None = None
        self._looked_outside = False

    def enter(self, folder: Folder) -> None:
        self._path = {p: b for p, b in self._path.items() if folder.parts[: len(p)] == p}
        found = consoles_in(folder)
        if found:
            self._path[folder.parts] = Beside(folder.parts, found)

    def of_run(self, parts: PathParts, path: str) -> FoundConsoles:
        own = self._path.get(parts)
        above = [b for p, b in self._path.items() if len(p) < len(parts) and b.is_above(parts)]
        outside = self._around_the_root()
        beside = (*above, *((outside,) if outside is not None else ()))
        named = [c for b in beside for c in b.consoles if _names(c.path, path)]
        return FoundConsoles((*(own.consoles if own else ()), *named), tuple(beside))

    def _around_the_root(self) -> Beside | None:
        if not self._looked_outside:
            self._looked_outside = True
            self._outside = _holder_of(self._root)
        return self._outside


def _holder_of(root: str) -> Beside | None:
    """The folder that contains the logdir; None if it has no console or cannot be listed."""
    path = files.absolute(root)
    if len(files.absolute_parts(path)) < 2:  # there is nothing above
        return None
    try:
        found = consoles_in(files.folder(files.split(path)[0]))
    except UnreadableFile:
        return None
    return Beside(None, found) if found else None


def consoles_in(folder: Folder) -> tuple[ConsoleFile, ...]:
    """The consoles in a folder, if they are few enough to belong to one job."""
    named = [n for n in folder.names if n.endswith(CONSOLE_NAMES) and EVENT_FILE not in n]
    if not named or len(named) > MOST_FILES:
        return ()
    return tuple(filter(None, (_console(folder, name) for name in named)))


def _console(folder: Folder, name: str) -> ConsoleFile | None:
    path = files.join(folder.path, name)
    try:
        info = folder.listed.get(name) or files.info(path)
    except UnreadableFile:  # a pipe, or gone: no run depends on it
        return None
    # An object store says when a file was put there, which may be long after.
    written_s = None if files.is_url(path) else info.modified_unix_s
    return ConsoleFile(path, info.size, info.stamp, written_s) if info.size else None


def _names(path: str, run_path: str) -> bool:
    name, run = files.split(path)[1], files.split(files.absolute(run_path))[1]
    pattern = rf"(?<![A-Za-z0-9]){re.escape(run)}(?![A-Za-z0-9])"
    return len(run) >= SHORTEST_NAME and re.search(pattern, name) is not None


def only_of_lone_runs(found: Iterable[FoundRun]) -> Iterator[Run]:
    """All runs; a run that has a folder above to itself gets its consoles. A run waits until the
    walk has left that folder, or has found another run in or below it."""
    crowded: set[PathParts | None] = set()
    around: list[PathParts] = []  # runs whose folder contains the next one
    waiting: list[FoundRun] = []
    for run in found:
        around = [parts for parts in around if run.parts[: len(parts)] == parts]
        crowded |= {beside.parts for beside in run.consoles.above if beside.parts in around}
        for other in waiting:
            crowded |= {b.parts for b in other.consoles.above if b.is_above(run.parts)}
        around.append(run.parts)
        waiting.append(run)
        still = [held for held in waiting if held.waits(crowded, run.parts)]
        for held in waiting:
            if held not in still:
                yield from held.settled(crowded)
        waiting = still
    for held in waiting:
        yield from held.settled(crowded)


def consoles_of_attempt(
    consoles: Sequence[ConsoleFile], attempts: Sequence[Attempt], index: int
) -> tuple[ConsoleFile, ...]:
    """If there are several attempts, each gets what was last written before the next one began."""
    begins, ends = _begins(attempts, index), _begins(attempts, index + 1)
    if len(attempts) == 1:
        return tuple(consoles)
    if index == len(attempts) - 1:
        return tuple(c for c in consoles if c.written_unix_s is None or c.written_unix_s >= begins)
    return tuple(
        c for c in consoles if c.written_unix_s is not None and begins <= c.written_unix_s < ends
    )


def _begins(attempts: Sequence[Attempt], index: int) -> float:
    if index >= len(attempts):
        return float("inf")
    writers = (writer_of(file.path) for file in attempts[index].event_files)
    return min((w.start_s for w in writers if w is not None), default=0.0)


# ---------------------------------------------------------------- named by the user


def with_named_console(runs: Iterable[Run], path: str) -> Iterator[Run]:
    """The console belongs to the only run or, if there are several, to the one that it is next to.
    Raises UsageError if it is not a file, or if nothing tells whose it is.
    """
    console = _named_console(path)
    first: Run | None = None  # kept back, because it may be the only one
    count = taken = 0
    for run in runs:
        mine = _lies_beside(path, run)
        count, taken = count + 1, taken + mine
        if count == 1 and not mine:
            first = run
            continue
        if first is not None:
            yield first
            first = None
        yield _with(run, console) if mine else run
    if first is not None:
        yield _with(first, console)
    elif count and not taken:
        raise UsageError(
            f"--console {path} is not next to any of the runs, so it is not known which of them "
            f"wrote it. Choose one with --run, or give that run's folder as PATH."
        )


def _named_console(path: str) -> ConsoleFile:
    try:
        if files.kind(path) is None:
            raise UsageError(f"--console {path} does not exist")
        info = files.info(path)
    except UnreadableFile as error:
        raise UsageError(f"--console {path} cannot be read: {error}") from error
    written_s = None if files.is_url(path) else info.modified_unix_s
    return ConsoleFile(
        files.absolute(path), info.size, info.stamp, written_s, is_own=True, is_named=True
    )


def _lies_beside(path: str, run: Run) -> bool:
    folder = files.absolute_parts(files.split(files.absolute(path))[0])
    return folder == files.absolute_parts(run.path)


def _with(run: Run, console: ConsoleFile) -> Run:
    return replace(run, consoles=(console,))  # the user named it, so nothing else is guessed
