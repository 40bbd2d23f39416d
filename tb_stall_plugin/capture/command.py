"""`stall-analyze capture`: runs a training command with the capture turned on.

The command itself is not changed, only its environment: a folder with a sitecustomize comes first
on PYTHONPATH, and Python imports that module before anything else.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO

from stall_analyzer.cli.argument_parser import ArgumentParser
from tb_stall_plugin.capture.imports import HANG_AFTER, LOGDIR

PROGRAM = "stall-analyze capture"
SWITCH = Path(__file__).parent / "switched_on"
CANNOT_RUN = 127  # as in shells

DESCRIPTION = """\
Runs a training script, unchanged, with the capture turned on: profiles of
the first epoch, losses, gradients, memory; and, if the run hangs or is killed,
what every thread was doing. All of it goes into DIR as ordinary event files
and profiles. Signals and the exit code are passed on.
"""

EPILOG = """\
examples:
  stall-analyze capture -- python train.py --epochs 3
  stall-analyze capture --logdir logs/run1 -- python -m my_package.train
  stall-analyze capture --hang-after 120 -- python train.py
  stall-analyze logs/run1         afterward: why is the run slow, or stuck?

where it works:
  - model.fit of Keras 3, of tf.keras 2 (TensorFlow 2.13 and newer) and of
    tf_keras. If a script hangs before fit, its stacks are recorded, too.
  - A script with its own StallCallback or watch: these also write to DIR,
    whatever folder the script names.
  - Each process that trains writes its own files: in a cluster, start every
    worker this way.

where it does not work:
  - A custom loop without fit does not show where a step ends: memory, hangs and
    how the program ended are recorded; steps and profiles are not. Add `watch`:

        import tb_stall_plugin as stall
        with stall.watch("DIR") as w:
            for x, y in dataset:
                w.step(loss=train_step(x, y))

  - With `python -I`, `-E` or `-S`, which ignore the environment, and with an
    interpreter without tensorboard-plugin-stall, the capture is not turned on.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [--logdir DIR] [--hang-after SECONDS] -- COMMAND …",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--logdir", metavar="DIR", help="where to write (default: stall-logs/<date>-<time>)"
    )
    parser.add_argument(
        "--hang-after",
        metavar="SECONDS",
        type=_seconds,
        help="how long to wait for a step to finish before writing the stacks "
        "(default: learned from the steps so far, at least a minute)",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("a command is required: -- python train.py")
    logdir = options.logdir or time.strftime("stall-logs/%Y%m%d-%H%M%S")
    if "://" not in logdir:
        logdir = str(Path(logdir).absolute())
    began_s = time.time()
    try:
        code = run(command, environment(os.environ, logdir, options.hang_after))
    except OSError as error:
        _say(f"cannot run {command[0]}: {error.strerror}")
        return CANNOT_RUN
    _say_what_is_left(logdir, began_s)
    return _end_like(code)


def environment(
    given: Mapping[str, str], logdir: str, hang_after_s: float | None
) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(SWITCH), given.get("PYTHONPATH"))))
    hang_after = "" if hang_after_s is None else str(hang_after_s)
    return {**given, "PYTHONPATH": path, LOGDIR: logdir, HANG_AFTER: hang_after}


def run(
    command: Sequence[str], variables: Mapping[str, str], output: IO[bytes] | None = None
) -> int:
    """The exit code; negative if a signal ended the command. `output` gets all that it prints."""
    early: list[int] = []
    child: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, _: FrameType | None) -> None:
        if child is None:
            early.append(number)
        elif number == signal.SIGTERM or not _at_a_terminal():
            child.send_signal(number)

    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), pass_on)
    child = subprocess.Popen(command, env=variables, stdout=output, stderr=output)
    for number in early:
        child.send_signal(number)
    return child.wait()


def _at_a_terminal() -> bool:
    """A terminal sends Ctrl-C to the command as well, which must not get it twice."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _end_like(code: int) -> int:
    """Whoever started us must see how the command ended, even if it was by a signal."""
    if code < 0 and os.name == "posix":
        import resource  # noqa: PLC0415 (not on Windows)

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        sys.stderr.flush()
        os.kill(os.getpid(), -code)
    return code


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return seconds


def _say_what_is_left(logdir: str, began_s: float) -> None:
    from tb_stall_plugin.capture.left_behind import in_words  # noqa: PLC0415

    try:
        _say(in_words(logdir, began_s))
    except Exception as error:  # if DIR is a URL, for example: the exit code matters more
        _say(f"{logdir} cannot be read: {error}")


def _say(message: str) -> None:
    print(f"{PROGRAM}: {message}", file=sys.stderr)
