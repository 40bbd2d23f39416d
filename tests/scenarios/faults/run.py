"""Trains every faulty program and its fixed form, and scores what the analyzer says of them.

python -m tests.scenarios.faults.run [names…] [--workdir DIR] [--repeats N] [--only-score]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.contradictions import contradictions, report
from tests.scenarios.faults.accuracy import TITLE, as_json, line, markdown, summary, write_section
from tests.scenarios.faults.score import Expected, Json, Judgment, judge, passed
from tests.scenarios.faults.table import all_faults, expected_of
from tests.scenarios.runner import all_known, finished, parser
from tests.scenarios.score import analyze

if TYPE_CHECKING:
    from tests.scenarios.faults.base import Fault

CAPTURE_TIMEOUT_S = 240


@dataclass(frozen=True)
class Case:
    """One fault and the folder that its logs go to."""

    group: str
    fault: Fault
    folder: Path

    @property
    def forms(self) -> tuple[str, ...]:
        return ("faulty", "fixed") if self.fault.fixed else ("faulty",)

    @property
    def expected(self) -> Expected:
        return expected_of(self.group, self.fault)

    def logs(self, form: str, turn: int) -> Path:
        return self.folder / (form if turn == 0 else f"{form}_{turn + 1}") / "logs"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    known = all_faults()
    if not all_known(options.names, known, "fault"):
        return 2
    chosen = [known[name] for name in options.names or known]
    if options.list:
        for group, fault in chosen:
            print(f"{fault.name:32} {group:10} {fault.finding or 'none':6} {fault.description}")
        return 0
    workdir = options.workdir or Path(tempfile.mkdtemp(prefix="stall-faults-"))
    cases = [Case(group, fault, workdir / fault.name) for group, fault in chosen]
    if options.only_score and (missing := [c for c in cases if not c.folder.exists()]):
        names = ", ".join(case.fault.name for case in missing)
        print(f"not run yet in {workdir}, so nothing is scored: {names}", file=sys.stderr)
        return 2
    judgments = []
    for case in cases:
        judgments.append(judged(case, options.repeats, not options.only_score))
        print(line(judgments[-1]), flush=True)
    print(f"\n{report({j.expected.name: j.contradictions for j in judgments})}")
    print(summary(judgments))
    if options.markdown:
        write_section(options.markdown, TITLE, markdown(judgments))
    if options.json:
        options.json.write_text(as_json(judgments) + "\n")
    return 0 if passed(judgments) else 1


def judged(case: Case, repeats: int, capture: bool) -> Judgment:
    """Whatever goes wrong with one program is its own problem."""
    try:
        first = judged_once(case, 1, capture)
        if repeats == 1 or first.outside_s is None:
            return first  # without a gain to check, one run says it all
        if capture:
            for turn in range(1, repeats):
                train_both(case, turn)
        return judged_once(case, repeats, capture=False)
    except (KeyError, IndexError, ValueError, OSError, subprocess.SubprocessError) as error:
        return Judgment(case.expected, problem=f"{type(error).__name__}: {error}")


def judged_once(case: Case, turns: int, capture: bool) -> Judgment:
    if capture:
        train_both(case, 0)
    runs = [
        typical([analyze(case.logs(form, turn)) for turn in range(turns)]) for form in case.forms
    ]
    judgment = judge(case.expected, runs[0], runs[1] if len(runs) > 1 else None)
    return replace(judgment, contradictions=tuple(t for run in runs for t in contradictions(run)))


def train_both(case: Case, turn: int) -> None:
    """One after the other, so that both see the same machine; neither is always the first."""
    for form in case.forms if turn % 2 == 0 else reversed(case.forms):
        train(case, form, turn)


def typical(runs: Sequence[Json]) -> Json:
    """The run with the median epoch; of two, the shorter one."""
    return sorted(runs, key=lambda run: run["window"]["duration_ps"])[(len(runs) - 1) // 2]


def train(case: Case, form: str, turn: int) -> None:
    logs = case.logs(form, turn)
    command = ["tests.scenarios.faults.child", case.group, case.fault.name, form, str(logs)]
    code = finished(command, logs.parent, CAPTURE_TIMEOUT_S, case.fault.env)
    if code:
        raise subprocess.CalledProcessError(code, command)


def _parser() -> argparse.ArgumentParser:
    options = parser("tests.scenarios.faults", __doc__, "fault", also_scores=True)
    options.add_argument(
        "--repeats",
        type=int,
        default=1,
        help="runs of each form where seconds were promised; the median epoch counts",
    )
    options.add_argument("--markdown", type=Path, help="put the tables into this Markdown file")
    options.add_argument("--json", type=Path, help="also write the scores to this file")
    return options


if __name__ == "__main__":
    sys.exit(main())
