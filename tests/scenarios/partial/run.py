"""Cuts full logs down to ordinary ones, and scores the analyzer on them. Trains nothing.

python -m tests.scenarios.partial.run [names…] [--ledger DIR] [--faults DIR] [--workdir DIR]
    [--half development|aside|both] [--verbose] [--json FILE] [--markdown FILE]

Rules are made on the development half. The half set aside is scored once, at the end.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from stall_analyzer import analyze
from stall_analyzer.errors import NothingFound
from tests.contradictions import contradictions
from tests.scenarios.faults.accuracy import write_section
from tests.scenarios.partial.cut import KINDS, LeftOut, Run, cut_logs
from tests.scenarios.partial.programs import (
    Program,
    fault_programs,
    ledger_programs,
    truth_file,
    truth_from_ledger,
)
from tests.scenarios.partial.report import TITLE, Result, as_json, markdown
from tests.scenarios.partial.score import Case, Said, said_in
from tests.scenarios.partial.split import HALVES, Half, half_of
from tests.scenarios.runner import QUIET

PROCESSES = 2
# Nothing is computed here: TensorFlow brings the protos of traces and the tables of faults.
QUIET_IMPORT = {**QUIET, "TF_ENABLE_ONEDNN_OPTS": "0"}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    os.environ.update(QUIET_IMPORT)
    found = [*ledger_programs(options.ledger), *fault_programs(options.faults)]
    if not found:
        places = f"{options.ledger} and {options.faults}"
        print(f"no captures in {places}: run make scenarios first", file=sys.stderr)
        return 2
    halves: tuple[Half, ...] = HALVES if options.half == "both" else (options.half,)
    chosen = [p for p in found if half_of(p.name) in halves]
    if options.names:
        chosen = [p for p in chosen if {p.name, p.title} & set(options.names)]
    cases = _all_cases(chosen, options.workdir)
    if not cases:
        print("none of these programs can be scored in this half", file=sys.stderr)
        return 2
    results = [
        Result(half, mine) for half in halves if (mine := [c for c in cases if c.half == half])
    ]
    print("\n".join(result.text(options.verbose) for result in results))
    if options.json:
        options.json.write_text(as_json(results))
    if options.markdown:
        write_section(options.markdown, TITLE, markdown(results))
    return 1 if any(result.missed or result.contradicts_itself for result in results) else 0


def _all_cases(programs: Sequence[Program], workdir: Path) -> list[Case]:
    """For programs that can be cut; for the others, the reason is printed."""
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
    half = half_of(program.name)
    return [Case(program.title, half, kind, truth, _said(cut)) for kind, cut in logs.items()]


def _said(logs: Path) -> Said:
    try:
        run = _analyzed(logs)
        return replace(said_in(run), contradictions=tuple(contradictions(run)))
    except NothingFound:
        return Said()


def _analyzed(logs: Path) -> Run:
    """The first run. Analyzed again each time, since the analyzer is what is being worked on."""
    run: Any = analyze(logs).document["runs"][0]
    return dict(run)


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
    result.add_argument("--markdown", type=Path, help="put the tables into this Markdown file")
    return result


if __name__ == "__main__":
    sys.exit(main())
