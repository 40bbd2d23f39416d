"""A batch as one JSON document, piece by piece, so that it is never all in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from stall_analyzer.batch.baseline import Changed
from stall_analyzer.batch.batch import Batch
from stall_analyzer.batch.judge import Judge
from stall_analyzer.batch.limits import Excess
from stall_analyzer.report.document import document
from stall_analyzer.report.valid_text import valid_text


def as_json(batch: Batch, judge: Judge) -> Iterator[str]:
    """What json.dumps would make of the whole document."""
    shell = document([], batch.notes)
    if batch.runs > 1:
        shell["fleet"] = judge.fleet.summary()
    if judge.limits.limits:
        shell["over_limit"] = [_plain(excess) for excess in judge.limits.in_order()]
    if judge.comparison and not judge.comparison.is_of_other_runs:
        shell["worse"] = [_plain(one) for one in judge.comparison.in_order()]
        shell["better"] = [_plain(one) for one in judge.comparison.better_in_order()]
    before, after = json.dumps(valid_text(shell), allow_nan=False).split('"runs": []', 1)
    yield f'{before}"runs": ['
    for number, line in enumerate(batch.lines()):
        yield f", {line}" if number else line
    yield f"]{after}\n"


def _plain(one: Excess | Changed) -> Any:
    return asdict(one)  # it has the fields of its entry; a test validates the document
