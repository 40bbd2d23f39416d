"""A batch as the one JSON document, piece by piece: the whole need never be in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from stall_analyzer.batch.batch import Batch
from stall_analyzer.batch.judge import Judge
from stall_analyzer.report.document import document

if TYPE_CHECKING:
    from stall_analyzer.report.document_types import ExcessEntry, WorseEntry


def as_json(batch: Batch, judge: Judge) -> Iterator[str]:
    """What json.dumps would make of the whole document."""
    shell = document([], batch.notes)
    if batch.runs > 1:
        shell["fleet"] = judge.fleet.summary()
    if judge.limits.limits:
        exceeded = [asdict(excess) for excess in judge.limits.in_order()]
        shell["over_limit"] = cast("list[ExcessEntry]", exceeded)
    if judge.comparison:
        worse = [asdict(one) for one in judge.comparison.in_order()]
        shell["worse"] = cast("list[WorseEntry]", worse)
    before, after = json.dumps(shell, allow_nan=False).split('"runs": []', 1)
    yield f'{before}"runs": ['
    for number, line in enumerate(batch.lines()):
        yield f", {line}" if number else line
    yield f"]{after}\n"
