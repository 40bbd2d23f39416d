"""The runs under some paths: what is already known about them, and reading the rest.

Nothing whose size depends on a run is kept after that run: runs to be read wait in a temporary
file, and results are in the store. Only the name of each run and its key in the store remain, about
300 bytes.
"""

from __future__ import annotations

import json
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, Any, TypeVar

from stall_analyzer.batch.engines import Engine
from stall_analyzer.batch.selection import ALL, Selection
from stall_analyzer.discover.console_files import with_named_console
from stall_analyzer.discover.discover import by_name, nothing_found, stream_runs
from stall_analyzer.errors import NothingFound, UnreadableFile
from stall_analyzer.files import files
from stall_analyzer.model.notes import Note
from stall_analyzer.model.runs import Run
from stall_analyzer.report.facts import Facts, shown_name
from stall_analyzer.report.valid_text import valid_text
from stall_analyzer.results import run_result
from stall_analyzer.results.result_store import ResultStore

if TYPE_CHECKING:
    from stall_analyzer.outcome import ExtraOf
    from stall_analyzer.report.document_types import ReportEntry

WAITING_IN_MEMORY_BYTES = 4 << 20
NAMES_SHOWN = 10
Kept = TypeVar("Kept")


class Batch:
    """`take` gets the facts of each run, in no particular order, once its result is in the store;
    runs that are not `wanted` are left out everywhere."""

    def __init__(
        self,
        store: ResultStore,
        take: Callable[[Facts], None] = lambda facts: None,
        wanted: Callable[[Facts], bool] | None = None,
    ) -> None:
        self._store = store
        self._hear = take
        self._wanted_facts = wanted
        self._unwanted: set[tuple[str, int]] = set()
        self._keys: list[tuple[str, int, str]] = []  # name, attempt, key in the store
        # Closed with the batch itself: it has no name, so nothing can be left behind.
        self._waiting: IO[bytes] = tempfile.SpooledTemporaryFile(WAITING_IN_MEMORY_BYTES)  # noqa: SIM115
        self._extras: dict[str, Any] = {}
        self._found: Callable[[], Iterable[Run]] = lambda: ()  # all runs, searched for once more
        self.notes: list[Note] = []
        self.tracebacks: list[str] = []
        self.to_read = 0
        self.bytes_to_read = 0
        self.last_to_read = ""  # its name
        self.root = ""  # the folder of the log directory, if that is a run itself
        self._again = False  # whether known results are ignored
        self.not_new = 0  # runs that have not changed since the given time

    @property
    def runs(self) -> int:
        return len(self._keys) - len(self._unwanted)

    @property
    def left_out(self) -> int:
        return len(self._unwanted)

    def _take(self, facts: Facts) -> None:
        if self._wanted_facts is None or self._wanted_facts(facts):
            self._hear(facts)
        else:
            self._unwanted.add((facts["run"], facts["attempt"]))

    def _wanted_keys(self) -> Iterator[str]:
        for run, attempt, key in self._keys:
            if (run, attempt) not in self._unwanted:
                yield key

    def find(
        self,
        paths: Sequence[str],
        selection: Selection,
        again: bool = False,
        seen: Callable[[int], None] = lambda runs: None,
    ) -> None:
        """All runs that are wanted, including known ones; `again` ignores known results. Raises
        NothingFound if there is no run at all, or none with a given name.
        """
        wanted = self._wanted(paths, selection, seen)
        self._again = again
        look_again = partial(stream_runs, [files.absolute(path) for path in paths], [])
        self._found = partial(_with_console, selection.console, look_again)
        for run in _with_console(selection.console, lambda: wanted):
            self._add(run, again)
        self._keys.sort(key=lambda key: by_name(*key[:2]))

    def _wanted(
        self, paths: Sequence[str], selection: Selection, seen: Callable[[int], None]
    ) -> Iterator[Run]:
        found = chosen = 0
        others: list[str] = []
        # Absolute, so that they mean the same in another process or another folder.
        for run in stream_runs([files.absolute(path) for path in paths], self.notes):
            found += 1
            if not selection.has_name(run):
                others = [*others, run.name][: NAMES_SHOWN + 1]
            elif not selection.is_new(run):
                self.not_new += 1
            elif selection.is_of_shard(run):
                chosen += 1
                yield run
            seen(found)
        if not found:
            raise NothingFound(nothing_found(paths, self.notes))
        if others and not chosen and not self.not_new and selection.shard == ALL:
            some = ", ".join(others[:NAMES_SHOWN]) + (", …" if len(others) > NAMES_SHOWN else "")
            wanted = " or ".join(selection.names)
            raise NothingFound(f"no run is named {wanted}; the runs are: {some}")

    def _add(self, run: Run, again: bool) -> None:
        if run.name == ".":
            self.root = run.folder
        self._keys.append((valid_text(run.name), run.attempt, self._store.key(run)))
        head = None if again else self._store.known(run)
        if head is not None:
            self._take(head.facts)
            return
        pickle.dump(run, self._waiting)
        self.to_read += 1
        self.bytes_to_read += run.size
        self.last_to_read = shown_name(run.name, run.attempt, run.folder)

    def analyze(
        self,
        engine: Engine,
        extra_of: ExtraOf | None = None,
        done: Callable[[Run], None] = lambda run: None,
    ) -> None:
        """Read the runs to be read. `extra_of` makes more from each report, see `extras`."""
        store = None if self._again else self._store.folder
        work = partial(run_result.analyze, extra_of=extra_of, store=store)
        for run, result in engine(self._runs_to_read(), work):
            self._store.put(run, result)
            if result.head.traceback:
                self.tracebacks.append(result.head.traceback)
            if extra_of:
                self._extras[self._store.key(run)] = result.extra
            self._take(result.head.facts)
            done(run)
        if self._store.problem:
            text = f"The results are not kept: {self._store.problem}."
            self.notes.append(Note("warning", text))

    def _runs_to_read(self) -> Iterator[Run]:
        self._waiting.seek(0)
        for _ in range(self.to_read):
            yield pickle.load(self._waiting)

    # ------------------------------------------------------------ results, by name

    def facts(self) -> Iterator[Facts]:
        for key in self._wanted_keys():
            yield self._kept(self._store.head, key).facts

    def lines(self) -> Iterator[str]:
        """The runs' entries in the document, as JSON."""
        for key in self._wanted_keys():
            yield self._kept(self._store.entry, key)

    def _kept(self, read: Callable[[str], Kept], key: str) -> Kept:
        """From the store. Results that were deleted or damaged in the meantime are made again."""
        try:
            return read(key)
        except UnreadableFile:
            for run in self._found():
                if self._store.key(run) == key:
                    self._store.put(run, run_result.analyze(run))
                    return read(key)
            raise

    def entries(self) -> Iterator[ReportEntry]:
        for line in self.lines():
            yield json.loads(line)

    def found(self) -> Iterator[Run]:
        """The runs themselves, searched for once more."""
        wanted = set(self._wanted_keys())
        return (run for run in self._found() if self._store.key(run) in wanted)

    def extras(self) -> list[Any]:
        """What `extra_of` made from each run."""
        return [self._extras.get(key) for key in self._wanted_keys()]


def _with_console(console: str, runs: Callable[[], Iterator[Run]]) -> Iterable[Run]:
    return with_named_console(runs(), console) if console else runs()
