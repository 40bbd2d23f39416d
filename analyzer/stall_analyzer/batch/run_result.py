"""One run to one result: plain data in, plain bytes out, wherever it is done.

A result is a line of JSON, what is known about the run in short and what the store needs, and then
the run's entry of the document, compressed. A pass over thousands of known runs reads little more
than the lines, and loads none of what an analysis needs.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias

from stall_analyzer.files.caches import is_live, version_of
from stall_analyzer.model.runs import Run
from stall_analyzer.progress import Progress, unseen
from stall_analyzer.report.facts import Facts, facts_of

if TYPE_CHECKING:
    from stall_analyzer.outcome import Also, Outcome

COMPRESSION = 1  # the others are slower than they are smaller


@dataclass(frozen=True)
class Job:
    run: Run
    also: Also | None = None  # what else to make of the report
    folder: str = ""  # where its paths begin, if they are relative


@dataclass(frozen=True)
class Head:
    """What the short line says."""

    version: str  # of the run's files
    final: bool  # whether reading the same files again would give the same result
    facts: Facts
    traceback: str = ""  # where our own code failed


class Result(NamedTuple):
    packed: bytes
    also: Any = None


Work: TypeAlias = Callable[[Job, Progress], Result]


def analyze(job: Job, progress: Progress = unseen) -> Result:
    """In this process."""
    from stall_analyzer import outcome  # noqa: PLC0415  see above

    if job.folder and Path.cwd() != Path(job.folder):
        os.chdir(job.folder)
    made = outcome.analyze_one(job.run, job.also, progress)
    return Result(pack(job.run, made), made.also)


def pack(run: Run, made: Outcome) -> bytes:
    final = made.final and not is_live(run)
    head = Head(version_of(run), final, facts_of(made.entry), made.traceback)
    line = json.dumps(vars(head), allow_nan=False).encode()
    entry = json.dumps(made.entry, allow_nan=False).encode()
    return line + b"\n" + zlib.compress(entry, COMPRESSION)


def unpack_head(packed: BinaryIO) -> Head:
    """Raises ValueError or TypeError where the bytes are damaged."""
    return Head(**json.loads(packed.readline()))


def unpack_entry(packed: BinaryIO) -> str:
    """The entry, as the line of JSON that it was made as. Raises zlib.error as well."""
    packed.readline()
    return zlib.decompress(packed.read()).decode()
