"""Asks the analyzer about every run that hung and was ended, and checks its answers.

python -m tests.scenarios.hangs.score [--workdir DIR]

Of a program that is stuck, status and bucket must be right, and the place must be named; of one
that ended itself, status and bucket. One that is only slow must not be called stuck, whatever ended
it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tests.contradictions import contradictions, report
from tests.scenarios.score import analyze

Json: TypeAlias = Mapping[str, Any]
FINDING = "ST510"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.hangs.score")
    parser.add_argument("--workdir", type=Path, default=Path("build/hangs"), help="see run.py")
    options = parser.parse_args(arguments)
    folders = sorted(path.parent for path in options.workdir.glob("*/*/truth.json"))
    wrong, against_itself = 0, {}
    for folder in folders:
        truth = json.loads((folder / "truth.json").read_text())
        run = analyze(folder / "logs")
        problem = judged(truth, run)
        wrong += bool(problem)
        against_itself[f"{truth['name']} {truth['signal']}"] = contradictions(run)
        print(f"{truth['name']:20} {truth['signal']:5} {problem or 'right'}")
        print(f"    {run['verdict']['sentence']}")
    print(f"\n{len(folders) - wrong} of {len(folders)} right")
    print(report(against_itself))
    return 1 if wrong or not folders or any(against_itself.values()) else 0


def judged(truth: Json, run: Json) -> str:
    """What is wrong with the answer, if anything is."""
    verdict = run["verdict"]
    if truth["status"] == "slow":
        return "it is called stuck" if verdict["status"] == "stuck" else ""
    said, right = (verdict["status"], verdict["primary"]), (truth["status"], truth["bucket"])
    if said != right:
        return f"called {' on '.join(said)}, not {' on '.join(right)}"
    if truth["status"] == "dead":
        return ""
    texts = [f["explanation"] for f in run["findings"] if f["id"] == FINDING]
    place = re.compile(rf"(?<!\w){re.escape(truth['place'])}(?!\w)")  # not a part of another word
    return "" if any(map(place.search, texts)) else f"{truth['place']} is not named"


if __name__ == "__main__":
    sys.exit(main())
