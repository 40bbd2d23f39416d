"""The scores of cut logs as text, JSON and a section of docs/explanation/accuracy.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tests.contradictions import report as contradictions_in
from tests.scenarios.partial.cut import KINDS
from tests.scenarios.partial.score import (
    Case,
    Summary,
    missed_targets,
    places_by_bucket,
    rows,
    summary,
)
from tests.scenarios.partial.split import Half

TITLE = "Ordinary logs"
INTRODUCTION = """\
The logs of these programs and of those in `tests/scenarios` were cut down to what Keras's
TensorBoard callback leaves: scalars of epochs, and a trace of one batch, ten batches, or none. *Or
listed* means right, or among at most three candidates. *Misattr.* is the share of the epoch that
the likely values put into wrong buckets. *In interval* counts buckets whose true value is between
low and high. Rules were developed on one half of the programs (*development*); the half set aside
(*aside*) was scored once, at the end."""


@dataclass(frozen=True)
class Result:
    """For one half, which has at least one program."""

    half: Half
    cases: Sequence[Case]

    def of_kind(self, kind: str) -> list[Case]:
        return [case for case in self.cases if case.kind == kind]

    @property
    def summaries(self) -> dict[str, Summary]:
        return {kind: summary(self.of_kind(kind)) for kind in KINDS}

    @property
    def missed(self) -> list[str]:
        return missed_targets(self.summaries)

    @property
    def contradicts_itself(self) -> bool:
        return any(case.said.contradictions for case in self.cases)

    def text(self, verbose: bool) -> str:
        details = [line for kind in KINDS for line in self._details(kind)] if verbose else []
        table = [_aligned(row) for row in rows(self.summaries)]
        missed = [f"missed: {target}" for target in self.missed] or ["all targets met"]
        against_itself = {f"{c.name} {c.kind}": c.said.contradictions for c in self.cases}
        title, found = f"Cut logs, half: {self.half}", contradictions_in(against_itself)
        return "\n".join([*details, "", title, *table, found, *missed])

    def _details(self, kind: str) -> list[str]:
        cases = self.of_kind(kind)
        places = [
            f"  {bucket:14} truth inside {n['inside']}, below {n['below']}, above {n['above']}"
            for bucket, n in places_by_bucket(cases).items()
        ]
        return ["", kind, *(case.line() for case in cases), *places]


def _aligned(row: Sequence[str]) -> str:
    return f"{row[0]:12}" + "".join(f"{cell:>17}" for cell in row[1:])


def markdown(results: Sequence[Result]) -> str:
    parts = [INTRODUCTION]
    for result in results:
        title, *body = ([result.half, *row[1:]] if not row[0] else row
                        for row in rows(result.summaries))  # fmt: skip
        lines = [title, ["---"] * len(title), *body]
        parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in lines))
    return "\n\n".join(parts)


def as_json(results: Sequence[Result]) -> str:
    halves = {result.half: _json(result) for result in results}
    return json.dumps(halves, indent=1) + "\n"


def _json(result: Result) -> dict[str, object]:
    return {
        "kinds": {kind: asdict(of_kind) for kind, of_kind in result.summaries.items()},
        "missed": result.missed,
        "cases": [
            {
                **asdict(case),
                "right": case.right,
                "right_or_candidate": case.right_or_candidate,
                "wrongly_probable": case.wrongly_probable,
                "misattributed": case.misattributed,
                "places": case.places,
            }
            for case in result.cases
        ],
    }
