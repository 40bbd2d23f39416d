"""Trains every program with StallCallback, and checks what the analyzer says of it.

python -m tests.scenarios.captured.run [names…] [--workdir DIR] [--only-score]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.contradictions import contradictions, report
from tests.scenarios.captured.programs import NOT_HERE, Case, all_cases
from tests.scenarios.runner import all_known, finished, parser
from tests.scenarios.score import analyze

TIMEOUT_S = 300


def main(arguments: Sequence[str] | None = None) -> int:
    known_options = parser("tests.scenarios.captured", __doc__, "program", also_scores=True)
    options = known_options.parse_args(arguments)
    known = all_cases()
    if not all_known(options.names, known, "program"):
        return 2
    chosen = options.names or list(known)
    if options.list:
        print("\n".join(chosen))
        return 0
    workdir = options.workdir or Path(tempfile.mkdtemp(prefix="stall-captured-"))
    wrong, against_itself = 0, {}
    for name in chosen:
        folder = workdir / name
        if not options.only_score and not train(name, folder):
            print(f"{name:34} {NOT_HERE}", flush=True)
            continue
        run = analyze(folder / "logs")
        problem, against_itself[name] = judged(known[name], run), contradictions(run)
        wrong += bool(problem)
        print(f"{name:34} {problem or 'right'}", flush=True)
    print(f"\n{wrong} of {len(chosen)} wrong")
    print(report(against_itself))
    return 1 if wrong or any(against_itself.values()) else 0


def train(name: str, folder: Path) -> bool:
    """False: this machine does not allow it."""
    command = ["tests.scenarios.captured.programs", name, str(folder / "logs")]
    code = finished(command, folder, TIMEOUT_S, {})
    said = (folder / "output.txt").read_text()
    if code and NOT_HERE not in said:
        raise RuntimeError(f"{name} failed: {said[-500:]}")
    return code == 0


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
