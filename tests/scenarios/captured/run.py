"""Trains every program with StallCallback, and checks what the analyzer says of it.

python -m tests.scenarios.captured.run [names…] [--workdir DIR] [--only-score]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.scenarios.captured.programs import NOT_HERE, Case, all_cases
from tests.scenarios.score import analyze

TIMEOUT_S = 300
ROOT = Path(__file__).resolve().parents[3]
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.captured.run")
    parser.add_argument("names", nargs="*", help="programs to run (all of them by default)")
    parser.add_argument("--workdir", type=Path, help="for the captures")
    parser.add_argument("--only-score", action="store_true", help="score what --workdir holds")
    options = parser.parse_args(arguments)
    workdir = options.workdir or Path(tempfile.mkdtemp(prefix="stall-captured-"))
    known = all_cases()
    wrong = 0
    for name in options.names or known:
        folder = workdir / name
        if not options.only_score and not train(name, folder):
            print(f"{name:34} {NOT_HERE}", flush=True)
            continue
        problem = judged(known[name], analyze(folder / "logs"))
        wrong += bool(problem)
        print(f"{name:34} {problem or 'right'}", flush=True)
    print(f"\n{wrong} of {len(options.names or known)} wrong")
    return 1 if wrong else 0


def train(name: str, folder: Path) -> bool:
    """False: this machine does not allow it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with (folder / "output.txt").open("w") as output:
        finished = subprocess.run(
            [sys.executable, "-m", "tests.scenarios.captured.programs", name, str(folder / "logs")],
            check=False,
            cwd=ROOT,
            env={**os.environ, **QUIET},
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
        )
    said = (folder / "output.txt").read_text()
    if finished.returncode and NOT_HERE not in said:
        raise RuntimeError(f"{name} failed: {said[-500:]}")
    return finished.returncode == 0


def judged(case: Case, run: Mapping[str, Any]) -> str:
    """What is wrong with the answer, if anything is."""
    findings = {finding["id"]: finding for finding in run["findings"]}
    if case.finding is None:
        acts = [f for f in findings.values() if f["severity"] == "act"]
        wrong = [f"{f['id']}: {f['title']}" for f in acts if f["bucket"] in ("numerics", "memory")]
        return "; ".join(wrong)
    if case.finding not in findings:
        return f"{case.finding} was not found, but {', '.join(findings) or 'nothing'}"
    finding = findings[case.finding]
    text = f"{finding['title']} {finding['explanation']}"
    missing = [word for word in case.says if word not in text]
    return f"{missing} not said in: {text}" if missing else ""


if __name__ == "__main__":
    sys.exit(main())
