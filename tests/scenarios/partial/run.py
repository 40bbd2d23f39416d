"""Cuts full logs down to ordinary ones, and scores the analyzer on them. Trains nothing.

python -m tests.scenarios.partial.run [names…] [--ledger DIR] [--faults DIR] [--workdir DIR]
    [--half development|aside|both] [--verbose] [--json FILE]

Rules are made on the development half. The half set aside is scored once, at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from stall_analyzer import analyze
from stall_analyzer.errors import NothingFound
from tests.scenarios.partial.cut import KINDS, LeftOut, Run, cut_logs
from tests.scenarios.partial.programs import (
    Program,
    fault_programs,
    ledger_programs,
    truth_file,
    truth_from_ledger,
)
from tests.scenarios.partial.score import Case, Said, Summary, said_in, summary, table
from tests.scenarios.partial.split import half_of
from tests.scenarios.runner import QUIET

PROCESSES = 2


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    os.environ.update(QUIET)  # for TensorFlow, whose protos cut the traces
    found = [*ledger_programs(options.ledger), *fault_programs(options.faults)]
    if not found:
        print(
            f"no captures in {options.ledger} and {options.faults}: run make scenarios first",
            file=sys.stderr,
        )
        return 2
    chosen = [p for p in found if options.half in ("both", half_of(p.name))]
    if options.names:
        chosen = [p for p in chosen if p.name in options.names]
    cases = _all_cases(chosen, options.workdir)
    summaries = _summaries(cases)
    print(_report(cases, summaries, options.half, options.verbose))
    if options.json:
        options.json.write_text(_as_json(cases, summaries))
    return 0 if cases else 1


def _all_cases(programs: Sequence[Program], workdir: Path) -> list[Case]:
    """Of programs that can be cut; the reasons of the others are printed."""
    cases: list[Case] = []
    # A fresh start for each process: TensorFlow, once imported, does not survive a fork.
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        for program, judged in zip(
            programs, pool.map(partial(judge, workdir=workdir), programs), strict=True
        ):
            if isinstance(judged, str):
                print(f"left out: {program.title}: {judged}")
            else:
                cases.extend(judged)
    return cases


def judge(program: Program, workdir: Path) -> list[Case] | str:
    """One case for each kind of cut, or why there is none."""
    if program.reason:
        return program.reason
    full_run = cache(lambda: _analyzed(program.logs))
    place = workdir / program.title
    try:
        truth = truth_file(program.truth) if program.truth else truth_from_ledger(full_run())
        logs = {kind: cut_logs(program.logs, place / kind, kind, full_run) for kind in KINDS}
    except (LeftOut, NothingFound) as reason:
        return str(reason)
    return [Case(program.title, kind, truth, _said(cut)) for kind, cut in logs.items()]


def _said(logs: Path) -> Said:
    try:
        return said_in(_analyzed(logs))
    except NothingFound:
        return Said()


def _analyzed(logs: Path) -> Run:
    """The first run. Analyzed anew each time: the analyzer is what is being worked on."""
    run: Any = analyze(logs).document["runs"][0]
    return dict(run)


def _summaries(cases: Sequence[Case]) -> dict[str, Summary]:
    by_kind = {kind: [case for case in cases if case.kind == kind] for kind in KINDS}
    return {kind: summary(of_kind) for kind, of_kind in by_kind.items() if of_kind}


def _report(cases: Sequence[Case], summaries: dict[str, Summary], half: str, verbose: bool) -> str:
    lines = []
    for kind in summaries if verbose else ():
        lines += ["", kind, *(case.line() for case in cases if case.kind == kind)]
    halves = "both halves" if half == "both" else f"half: {half}"
    return "\n".join([*lines, "", f"Cut logs, {halves}", table(summaries)])


def _as_json(cases: Sequence[Case], summaries: dict[str, Summary]) -> str:
    rows = [
        {**asdict(case), "right": case.right, "misattributed": case.misattributed} for case in cases
    ]
    kinds = {kind: asdict(of_kind) for kind, of_kind in summaries.items()}
    return json.dumps({"kinds": kinds, "cases": rows}, indent=1) + "\n"


def _parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="python -m tests.scenarios.partial.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("names", nargs="*", help="programs to score (all of the half by default)")
    result.add_argument("--ledger", type=Path, default=Path("build/ledger"))
    result.add_argument("--faults", type=Path, default=Path("build/faults"))
    result.add_argument("--workdir", type=Path, default=Path("build/partial"),
                        help="where the cut logs go")  # fmt: skip
    result.add_argument("--half", choices=("development", "aside", "both"), default="development")
    result.add_argument("--verbose", action="store_true", help="a line for each case")
    result.add_argument("--json", type=Path, help="also write the scores to this file")
    return result


if __name__ == "__main__":
    sys.exit(main())
