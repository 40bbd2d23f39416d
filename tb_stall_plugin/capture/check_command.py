"""`stall-analyze check`: runs a training script up to its first fit, and tries one batch there."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from stall_analyzer.captures.capture_format import CHECK_TITLES, CheckResult
from stall_analyzer.captures.capture_records import PreflightCheck, PreflightRecord
from stall_analyzer.cli.argument_parser import ArgumentParser
from tb_stall_plugin.capture.command import CANNOT_RUN, environment, run
from tb_stall_plugin.capture.imports import CHECK, GO_ON, STOP

PROGRAM = "stall-analyze check"
NOTHING_CHECKED = 3  # the same code as when there is no run to analyze
FOUND = 4

DESCRIPTION = """\
Runs a training script, unchanged, up to its first model.fit, and tries one
batch there. Are its values finite? Do labels, outputs and loss fit together? Do
gradients reach every layer? Can the model memorize a few examples? Then the
program ends. All of this takes only seconds.
"""

EPILOG = """\
examples:
  stall-analyze check train.py --epochs 3
  stall-analyze check --go-on train.py    check, then train as usual
  stall-analyze check -- python -m my_package.train

exit codes:
  0  no problem was found    3  nothing could be checked
  4  a problem was found     2  usage error
  If the script fails, the exit code is that of the script.

where it does not work:
  - A custom loop, with or without `watch`, has no fit to stop at and no step
    to try, so nothing is checked.
  - Models with a custom train_step or more than 100 million parameters are
    not tried; only the batch is inspected. Under a distribution strategy,
    nothing is checked.
"""

WORDS = {
    CheckResult.PASSED: "passed",
    CheckResult.FAILED: "FAILED",
    CheckResult.NOT_CHECKED: "not checked",
}

NO_FIT = """\
nothing was checked: the script ended without calling Keras's model.fit. A custom
training loop, with or without `watch`, cannot be checked this way, because it
does not show where a step begins. Instead, let it train on a single batch for a
hundred steps; the loss should fall far below its first value."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [--logdir DIR] [--go-on] SCRIPT [ARGUMENT …]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--logdir", metavar="DIR", help="where to write (default: stall-logs/<date>-<time>)"
    )
    parser.add_argument(
        "--go-on", action="store_true", help="let the program train after the checks"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    command = _command(options.command)
    if not command:
        parser.error("a script is required, such as train.py")
    logdir = str(Path(options.logdir or time.strftime("stall-logs/%Y%m%d-%H%M%S")).absolute())
    return _checked(command, logdir, GO_ON if options.go_on else STOP)


def _command(given: Sequence[str]) -> list[str]:
    if given[:1] == ["--"]:
        return list(given[1:])
    return [sys.executable, *given] if given else []


def _checked(command: Sequence[str], logdir: str, mode: str) -> int:
    began_s = time.time()
    try:
        code = run(command, {**environment(os.environ, logdir, None), CHECK: mode})
    except OSError as error:
        print(f"{PROGRAM}: cannot run {command[0]}: {error.strerror}", file=sys.stderr)
        return CANNOT_RUN
    from tb_stall_plugin.capture.left_behind import captures_since  # noqa: PLC0415

    captures = captures_since(logdir, began_s)
    records = [record for capture in captures for record in capture.preflights]
    if not records:
        why = f"the script ended with exit code {code} before calling model.fit" if code else NO_FIT
        print(f"{PROGRAM}: {why}", file=sys.stderr)
        return code if code > 0 else NOTHING_CHECKED
    print(in_words(records[0]))
    return code if code > 0 else exit_code(records[0])


def exit_code(record: PreflightRecord) -> int:
    results = {check.result for check in record.checks}
    if CheckResult.FAILED in results:
        return FOUND
    return 0 if CheckResult.PASSED in results else NOTHING_CHECKED


def in_words(record: PreflightRecord) -> str:
    lines = [_line(check) for check in record.checks]
    return "\n".join([*lines, "", _verdict(record)])


def _line(check: PreflightCheck) -> str:
    word, title = WORDS.get(check.result, check.result), CHECK_TITLES.get(check.name, check.name)
    return f"{word:11}  {title:21}  {check.text}"


def _verdict(record: PreflightRecord) -> str:
    took = f"The checks took {record.seconds or 0:.1f} s."
    found = [check for check in record.checks if check.result == CheckResult.FAILED]
    left = [check for check in record.checks if check.result == CheckResult.NOT_CHECKED]
    if found:
        names = ", ".join(CHECK_TITLES.get(check.name, check.name) for check in found)
        return f"Do not start this training yet. Failed: {names}. {took}"
    if len(left) == len(record.checks):
        return f"Nothing could be checked. {took}"
    rest = f"; {len(left)} of {len(record.checks)} checks gave no result" if left else ""
    return f"No problem was found{rest}. Learning rates and schedules were not tried. {took}"
