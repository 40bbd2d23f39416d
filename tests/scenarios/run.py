"""Captures the scenarios, each in a process of its own, and scores the analyzer on them.

python -m tests.scenarios.run [names…] [--workdir DIR] [--list] [--only-capture|--only-score]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.scenarios.catalogue import SCENARIOS, Scenario
from tests.scenarios.score import as_json, passed, score, table

CAPTURE_TIMEOUT_S = 180


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    known = {scenario.name: scenario for scenario in SCENARIOS}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        print(f"no such scenario: {', '.join(unknown)} (see --list)", file=sys.stderr)
        return 2
    chosen = [known[name] for name in options.names] or list(SCENARIOS)
    if options.list:
        for scenario in chosen:
            print(f"{scenario.name:32} {scenario.primary:14} {scenario.description}")
        return 0
    workdir = Path(options.workdir or tempfile.mkdtemp(prefix="stall-scenarios-"))
    failed = [] if options.only_score else [s.name for s in chosen if not capture(s, workdir)]
    if failed:
        print(f"not captured: {', '.join(failed)}", file=sys.stderr)
    if options.only_capture:
        return 1 if failed else 0
    captured = [s for s in chosen if (workdir / s.name / "truth.json").exists()]
    scores = [score(workdir / scenario.name) for scenario in captured]
    if not scores:
        print(f"nothing to score in {workdir}", file=sys.stderr)
        return 1
    print(table(scores))
    if options.json:
        Path(options.json).write_text(as_json(scores))
    return 0 if passed(scores) and not failed else 1


def capture(scenario: Scenario, workdir: Path) -> bool:
    """Runs one scenario afresh; its output goes to a file beside its logs."""
    folder = workdir / scenario.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    root = Path(__file__).resolve().parents[2]
    environment = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "", **scenario.env}
    with (folder / "output.txt").open("w") as output:
        try:
            finished = subprocess.run(
                [sys.executable, "-m", "tests.scenarios.child", scenario.name, str(folder)],
                check=False,
                cwd=root,
                env={**os.environ, **environment},
                stderr=subprocess.STDOUT,
                stdout=output,
                timeout=CAPTURE_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            return False
    return finished.returncode == 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.run", description=__doc__)
    parser.add_argument("names", nargs="*", help="scenarios to run (all of them by default)")
    parser.add_argument("--workdir", help="where the captures go (a temporary folder by default)")
    parser.add_argument("--json", help="also write the scores to this file")
    parser.add_argument("--list", action="store_true", help="list the scenarios and stop")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--only-capture", action="store_true")
    group.add_argument("--only-score", action="store_true", help="score what --workdir holds")
    return parser


if __name__ == "__main__":
    sys.exit(main())
