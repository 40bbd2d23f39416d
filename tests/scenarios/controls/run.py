"""Trains every program on its input and on ready batches, and scores what the analyzer calls input.

python -m tests.scenarios.controls.run [names…] [--workdir DIR] [--only-score]
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.scenarios.controls.programs import PROGRAMS
from tests.scenarios.runner import all_known, finished, parser
from tests.scenarios.score import PS_PER_S, analyze

TIMEOUT_S = 180
LIMIT = 0.03  # of the epoch


def main(arguments: Sequence[str] | None = None) -> int:
    known_options = parser("tests.scenarios.controls", __doc__, "program", also_scores=True)
    options = known_options.parse_args(arguments)
    if not all_known(options.names, PROGRAMS, "program"):
        return 2
    chosen = options.names or list(PROGRAMS)
    if options.list:
        print("\n".join(chosen))
        return 0
    workdir = options.workdir or Path(tempfile.mkdtemp(prefix="stall-controls-"))
    if not options.only_score:
        for name in chosen:
            train(name, workdir / name)
    errors = [scored(name, workdir / name) for name in chosen]
    print(f"\nworst: {max(errors, key=abs):+.1%} of the epoch")
    return 0 if max(map(abs, errors)) <= LIMIT else 1


def train(name: str, folder: Path) -> None:
    command = ["tests.scenarios.controls.programs", name, str(folder)]
    if finished(command, folder, TIMEOUT_S, {}):
        raise RuntimeError(f"{name} failed: {(folder / 'output.txt').read_text()[-500:]}")


def scored(name: str, folder: Path) -> float:
    """By what share of the epoch the analyzer is off the control."""
    truth, run = json.loads((folder / "truth.json").read_text()), analyze(folder / "logs")
    said = run["buckets_ps"]["input"] / PS_PER_S
    beside = run["causes_ps"].get("input.contention", 0) / PS_PER_S
    error = float((said - truth["input_s"]) / truth["epoch_s"])
    ready = ", ".join(f"{seconds:.2f}" for seconds in truth["ready_s"])
    print(
        f"{name:22} epoch {truth['epoch_s']:.2f} s, on ready batches {ready} s; input "
        f"{truth['input_s']:.2f} s, said {said:.2f} s ({beside:.2f} s beside steps): {error:+.1%}",
        flush=True,
    )
    return error


if __name__ == "__main__":
    sys.exit(main())
