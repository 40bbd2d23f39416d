"""Runs programs that were written by people who knew nothing of the analyzer, and scores it.

python -m tests.scenarios.blind.run [names…] [--round ROUND] [--workdir DIR] [--only-score]

The figures of the first look at each round are in docs/explanation/accuracy.md; see README.md here.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stall_analyzer import analyze
from stall_analyzer.errors import NothingFound
from tests.scenarios.blind.score import Score, score, table
from tests.scenarios.runner import all_known, finished, parser

HERE = Path(__file__).resolve().parent
ROUNDS = tuple(sorted(path.name for path in HERE.glob("round*")))
LONGEST_S = 180


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    scores = []
    for folder in (HERE / name for name in options.round or ROUNDS):
        truth = json.loads((folder / "truth.json").read_text())
        if options.names and options.round and not all_known(options.names, truth, "program"):
            return 2
        names = [name for name in options.names or truth if name in truth]
        if options.list:
            print("\n".join(f"{name:32} {truth[name]['primary']}" for name in names))
            continue
        for name in names:
            program, work = folder / f"{name}.py", options.workdir / folder.name / name
            if not options.only_score and not _ran(program, work, truth[name]["fixed"]):
                print(f"{name}: failed, see {work}", file=sys.stderr)
                continue
            scores.append(_scored(name, truth[name], work))
    if scores:
        print(table(scores))
    return 0


def _ran(program: Path, work: Path, has_fixed: bool) -> bool:
    return _ran_form(program, work / "faulty", []) and (
        not has_fixed or _ran_form(program, work / "fixed", ["--fixed"])
    )


def _ran_form(program: Path, folder: Path, form: list[str]) -> bool:
    scratch = folder / "scratch"
    command = ["harness", str(program), str(folder / "logs"), str(folder / "clocks.json"), *form]
    where = {"PYTHONPATH": str(HERE), "BLIND_SCRATCH": str(scratch)}
    try:
        return finished(command, folder, LONGEST_S, where) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _scored(name: str, truth: dict[str, Any], work: Path) -> Score:
    clocks = json.loads((work / "faulty" / "clocks.json").read_text())
    fixed = work / "fixed" / "clocks.json"
    try:
        runs = analyze(work / "faulty" / "logs").document["runs"]
    except NothingFound:
        runs = []
    return score(
        name, truth, runs, clocks, json.loads(fixed.read_text()) if truth["fixed"] else None
    )


def _parser() -> argparse.ArgumentParser:
    options = parser("tests.scenarios.blind", __doc__, "program", True, Path("build/blind"))
    options.add_argument(
        "--round", action="append", choices=ROUNDS, help="one round alone (all by default)"
    )
    return options


if __name__ == "__main__":
    sys.exit(main())
