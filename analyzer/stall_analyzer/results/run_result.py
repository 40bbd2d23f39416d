"""From one run to one result: plain data in, plain data out, wherever it is done."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stall_analyzer.files.caches import is_live, version_of
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.runs import Run
from stall_analyzer.progress import Progress, ignore_progress
from stall_analyzer.report.facts import Facts, facts_of
from stall_analyzer.report.valid_text import may_be_invalid, valid_text

if TYPE_CHECKING:
    from stall_analyzer.outcome import ExtraOf, Outcome

COMPRESSION = 1  # higher levels cost more time than the space they save


@dataclass(frozen=True)
class ResultHead:
    """The short facts about a run."""

    version: str  # of the run's files
    final: bool  # whether reading the same files again would give the same result
    facts: Facts
    traceback: str = ""  # if our own code failed
    timeless: bool = False  # whether that holds even while the run continues


@dataclass(frozen=True)
class RunResult:
    """A run's entry, packed, and the short facts about it."""

    head: ResultHead
    packed: bytes  # the run's entry in the document
    extra: Any = None

    @property
    def entry(self) -> str:
        return unpack_entry(self.packed)


def analyze(
    run: Run,
    progress: Progress = ignore_progress,
    extra_of: ExtraOf | None = None,
    store: Path | None = None,
) -> RunResult:
    """In this process. What was read of a growing run is kept in the store's folder."""
    from stall_analyzer import outcome  # noqa: PLC0415  not needed if all runs are known

    kept_in = store if is_live(run) else None
    return result_of(run, outcome.analyze_one(run, extra_of, progress, kept_in))


def result_of(run: Run, made: Outcome) -> RunResult:
    entry = made.entry
    text = json.dumps(entry, allow_nan=False)
    if may_be_invalid(text):
        entry = valid_text(entry)
        text = json.dumps(entry, allow_nan=False)
    facts = facts_of(entry)
    head = ResultHead(version_of(run), made.final, facts, made.traceback, made.timeless)
    return RunResult(head, zlib.compress(text.encode(), COMPRESSION), made.extra)


def unpack_entry(packed: bytes) -> str:
    """The entry as the original line of JSON. Raises zlib.error if it is damaged."""
    return zlib.decompress(packed).decode()
