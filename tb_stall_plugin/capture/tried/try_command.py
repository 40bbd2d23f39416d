"""`stall-analyze try`: measures what a change saves, taking turns with and without it."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stall_analyzer.cli.argument_parser import ArgumentParser
from stall_analyzer.errors import NothingFound, UsageError
from tb_stall_plugin.capture.command import CANNOT_RUN, environment, run
from tb_stall_plugin.capture.imports import LOGDIR, TRY
from tb_stall_plugin.capture.tried import measured
from tb_stall_plugin.capture.tried.changes import (
    CHANGES,
    Knob,
    TriedChange,
    refusal,
    steps_together,
)
from tb_stall_plugin.capture.tried.orders import Answer, Order
from tb_stall_plugin.capture.tried.predicted import Prediction, predicted

PROGRAM = "stall-analyze try"
NOT_TRIED = 3  # the same code as when there is no run to analyze
FAILS = 4
STEPS, SECONDS, TURNS = 1024, 20.0, 3
LAST_LINES = 15  # of what a script printed before it failed

DESCRIPTION = """\
Makes the change that a finding advises, without editing the training script,
and measures what it saves: the script runs in new processes, alternately with
and without the change, up to the first steps of its first fit. The result is
shown next to the saving that the finding predicts, which is based on a capture
of the unchanged script.
"""

EPILOG = f"""\
what can be tried:
{chr(10).join(f"  {finding}  {change}" for finding, change in sorted(CHANGES.items()))}
  For other findings, the command says why they cannot be tried.

what happens to the script:
  It runs {2 * TURNS + 1} times, and is stopped each time after the last of the steps that
  are measured: code after fit does not run, and neither do validation and what
  callbacks do at the end of the epoch. Keras's callbacks TensorBoard, CSVLogger
  and ModelCheckpoint write to a folder that is deleted afterward;
  BackupAndRestore and the script's own StallCallback are left out. What the
  script itself writes before fit, and what its own callbacks write after a
  batch, is written each time.

examples:
  stall-analyze try ST109 -- python train.py
  stall-analyze try ST105 --steps 200 --turns 5 -- python train.py --size 224

exit codes:
  0  measured    2  refused    4  the script fails with the change
  3  there was no fit to measure, or the script failed without the change
"""


@dataclass(frozen=True)
class _Trials:
    command: Sequence[str]
    folder: Path  # deleted afterward
    change: TriedChange
    runs: int

    def run(self, order: Order, number: int, words: str) -> Answer:
        """Runs one process. Raises if it does not answer, or refuses the change."""
        order = replace(order, folder=str(self.folder / f"run{number}"))
        Path(order.folder).mkdir()
        _say(f"{number} of {self.runs}: {words}")
        variables = {**environment(os.environ, order.logdir, None), TRY: order.to_text()}
        if not order.logdir:
            del variables[LOGDIR]
        printed = Path(order.folder, "printed.txt")
        with printed.open("wb") as output:
            code = run(self.command, variables, output)
        answer = Answer.read(order)
        if answer is None:
            raise _NoAnswer(code, printed.read_text(encoding="utf-8", errors="replace"), order)
        if answer.refused:
            raise UsageError(f"the change ({self.change}) cannot be tried: {answer.refused}")
        return answer


class _NoAnswer(Exception):
    def __init__(self, code: int, printed: str, order: Order) -> None:
        super().__init__(code)
        self.code, self.printed, self.order = code, printed, order


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    ours, command = _divided(given)
    options = _parser().parse_args(ours)
    try:
        finding = _finding(options.finding)
        if not command:
            raise UsageError("a command is required: -- python train.py")
        return _tried(options, command, finding)
    except UsageError as error:
        _say(str(error))
        return error.exit_code
    except _NoAnswer as error:
        return _explain(error)
    except OSError as error:
        _say(f"cannot run {command[0]}: {error.strerror}")
        return CANNOT_RUN


def _parser() -> argparse.ArgumentParser:
    parser = ArgumentParser(
        prog=PROGRAM,
        usage=f"{PROGRAM} FINDING [options] -- COMMAND …",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("finding", metavar="FINDING", help="id or name, such as ST109")
    parser.add_argument(
        "--steps",
        type=_count,
        default=STEPS,
        help=f"number of steps to measure, at most (default: {STEPS:,})",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        help=f"how many seconds these steps may take (default: {SECONDS:.0f})",
    )
    parser.add_argument(
        "--turns",
        type=_count,
        default=TURNS,
        help=f"number of pairs of runs, with and without the change (default: {TURNS})",
    )
    parser.add_argument(
        "--logdir",
        metavar="DIR",
        help="where to write (default: stall-logs/<date>-<time>)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _divided(given: list[str]) -> tuple[list[str], list[str]]:
    """Our own arguments, and the command."""
    end = given.index("--") if "--" in given else len(given)
    return given[:end], given[end + 1 :]


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _finding(wanted: str) -> str:
    """The id of a finding that can be tried, given its id or name."""
    from stall_analyzer.detectors import manual  # noqa: PLC0415

    page = manual.page(wanted)
    if "TF_CONFIG" in os.environ:
        raise UsageError(
            "workers of a cluster wait for each other, so nothing can be tried on a single worker"
        )
    if page.id not in CHANGES:
        raise UsageError(refusal(page.id))
    return page.id


def _tried(options: argparse.Namespace, command: Sequence[str], finding: str) -> int:
    change = CHANGES[finding]
    logdir = str(Path(options.logdir or time.strftime("stall-logs/%Y%m%d-%H%M%S")).absolute())
    with tempfile.TemporaryDirectory(prefix="stall-try-") as folder:
        trials = _Trials(command, Path(folder), change, 1 + 2 * options.turns)
        order = Order("", options.steps, options.seconds, logdir=logdir)
        seen = trials.run(order, 1, "unchanged, with a capture")
        if change.knob is Knob.STEPS_PER_EXECUTION:
            change = replace(change, value=steps_together(seen.steps))
        steps = seen.steps - seen.steps % (change.value or 1)
        prediction = _prediction(logdir, finding, steps / seen.steps)
        answers = list(_by_turns(trials, options.turns, Order("", steps), change))
    result = measured.compared(answers)
    if options.json:
        print(json.dumps(measured.as_data(finding, str(change), result, prediction), indent=2))
    else:
        print(measured.in_words(finding, change, result, prediction))
    return 0


def _by_turns(
    trials: _Trials, turns: int, plain: Order, change: TriedChange
) -> Iterator[tuple[Answer, Answer]]:
    """Pairs of runs without and with the change. They take turns in coming first: otherwise, a
    machine that gets warmer or busier would favor one of them."""
    changed = replace(plain, knob=change.knob, value=change.value)
    for turn in range(turns):
        number = 2 + 2 * turn
        if turn % 2 == 0:  # begins with the change: it may be refused before anything else is run
            after = trials.run(changed, number, "with the change")
            yield trials.run(plain, number + 1, "without the change"), after
        else:
            before = trials.run(plain, number, "without the change")
            yield before, trials.run(changed, number + 1, "with the change")


def _prediction(logdir: str, finding: str, share: float) -> Prediction | None:
    try:
        prediction = predicted(logdir, finding, share)
    except NothingFound:
        prediction = None
    if prediction is None:
        _say(f"the capture does not show {finding}, so there is no prediction; measuring anyway")
    return prediction


def _explain(error: _NoAnswer) -> int:
    lines = error.printed.splitlines()[-LAST_LINES:]
    sys.stderr.writelines(f"  {line}\n" for line in lines)
    if error.code == 0:
        _say("the script ended without calling Keras's model.fit: custom loops cannot be tried")
        return NOT_TRIED
    changed = error.order.knob is not None
    which = "with" if changed else "without"
    _say(f"{which} the change, the script ended with exit code {error.code}")
    return FAILS if changed else NOT_TRIED


def _say(message: str) -> None:
    print(f"{PROGRAM}: {message}", file=sys.stderr)
