"""Trains every program on its input and on ready batches, and scores what the analyzer calls input.

python -m tests.scenarios.controls.run [names…] [--workdir DIR] [--only-score]
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tests.scenarios.controls.programs import PROGRAMS, TURNS
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
    """By what share of the epoch the analyzer is off the control. Fetching a ready batch is input,
    too, and in both epochs: what it says of the real one beyond that is compared."""
    truth = json.loads((folder / "truth.json").read_text())
    said = [
        (input_s(folder / f"logs{turn}") - input_s(folder / f"ready{turn}")) / seconds
        for turn, seconds in enumerate(truth["epochs_s"])
    ]
    error = float(median(said) - truth["input_share"])
    middle = truth["shares"][TURNS // 4 : -(TURNS // 4)]
    print(
        f"{name:22} epoch {median(truth['epochs_s']):.2f} s, input {truth['input_share']:.1%} of it"
        f" ({middle[0]:.1%} to {middle[-1]:.1%}), said {median(said):.1%}: {error:+.1%}",
        flush=True,
    )
    return error


def input_s(logs: Path) -> float:
    return float(analyze(logs)["buckets_ps"]["input"] / PS_PER_S)


if __name__ == "__main__":
    sys.exit(main())
