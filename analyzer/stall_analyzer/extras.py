"""What `stall-analyze` can write besides its report: the page in one file, annotated traces.

Each needs more of a report than its entry in the document, and is made in the process that has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stall_analyzer.files.output import check_file, write_file
from stall_analyzer.model.records import dataclass

if TYPE_CHECKING:
    from stall_analyzer.outcome import ExtraOf
    from stall_analyzer.report.document_types import Document
    from stall_analyzer.report.facts import Facts


@dataclass(frozen=True)
class Extra:
    """What is made from each run besides its entry, and how it is written."""

    extra_of: ExtraOf
    # Takes the document, what `extra_of` made from each of its runs, and the facts of all runs;
    # returns what was written.
    write: Callable[[Document, Sequence[Any], Iterable[Facts]], list[Path]]
    most_runs: float = math.inf  # if there are more, only the costliest are in the document


def page_in(path: Path, logdirs: Sequence[str] = ()) -> Extra:
    """Raises UsageError, before the work, if the page cannot be made or written."""
    from stall_analyzer.report import html  # noqa: PLC0415  slow, and needed only here

    check_file(path)
    html.bundle_path()

    def write(document: Document, made: Sequence[Any], listed: Iterable[Facts]) -> list[Path]:
        write_file(path, [html.render(document, made, list(listed), ", ".join(logdirs))])
        return [path]

    return Extra(html.timelines_of, write, html.MOST_RUNS)


def annotated_traces_in(folder: Path, logdirs: Sequence[str]) -> Extra:
    """Raises UsageError, before the work, if `folder` must not be written into."""
    from stall_analyzer.report import annotate  # noqa: PLC0415

    annotate.check_folder(folder, logdirs)

    def write(_: Document, made: Sequence[Any], __: Iterable[Facts]) -> list[Path]:
        every = [annotation for annotations in made for annotation in annotations or ()]
        return annotate.write_copies(every, folder)

    return Extra(annotate.annotations_of, write)
