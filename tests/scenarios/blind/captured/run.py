"""Runs programs of blind authors with nothing but the capture, and compares the verdicts with their
truth.

python -m tests.scenarios.blind.captured.run [names…] [--workdir DIR] [--list] [--only-score]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stall_analyzer import analyze
from tests.contradictions import contradictions
from tests.scenarios.runner import all_known, emptied, parser

HERE = Path(__file__).parent
TIMEOUT_S = 300


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser("tests.scenarios.blind.captured", __doc__, "program", True).parse_args(
        arguments
    )
    programs = {path.stem: path for path in sorted(HERE.glob("round*/*.py"))}
    if not all_known(options.names, programs, "program"):
        return 2
    chosen = options.names or list(programs)
    if options.list:
        print("\n".join(chosen))
        return 0
    workdir = options.workdir or Path(tempfile.mkdtemp(prefix="stall-blind-"))
    right = []
    for name in chosen:
        logs = workdir / name / "logs"
        if not options.only_score:
            run(programs[name], emptied(logs))
        truth = json.loads(programs[name].with_name("truth.json").read_text("utf-8"))[name]
        right.append(is_right(name, truth, logs))
    print(f"{sum(right)} of {len(right)} right")
    return 0 if all(right) else 1


def run(program: Path, logs: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(HERE), "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run(
        [sys.executable, program, logs],
        env=environment, timeout=TIMEOUT_S, check=False, capture_output=True,
    )  # fmt: skip


def is_right(name: str, truth: dict[str, Any], logs: Path) -> bool:
    """Whether the bucket is one that the author accepts, and learning is judged as it is."""
    (entry,) = analyze(logs).document["runs"]
    verdict = entry["verdict"]
    learns = verdict["status"] != "learning_nothing"
    right = verdict["primary"] in (truth["primary"], *truth["also_right"])
    right &= learns == truth["learns"]
    print(f"{'right' if right else 'WRONG'}  {name}: {truth['primary']}; {verdict['sentence']}")
    for contradiction in contradictions(entry):
        print(f"       contradiction: {contradiction}")
    return bool(right)


if __name__ == "__main__":
    raise SystemExit(main())
