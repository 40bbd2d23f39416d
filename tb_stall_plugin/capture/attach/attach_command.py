"""`stall-analyze attach`: is a process that was started without a capture stuck, and where?"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from stall_analyzer.cli.argument_parser import ArgumentParser
from tb_stall_plugin.capture.attach.attached_job import attached_job
from tb_stall_plugin.capture.attach.job_views import as_json, as_text, kernel_view
from tb_stall_plugin.capture.attach.refusals import Refused, StacksRefused

PROGRAM = "stall-analyze attach"
REFUSED = 2
INTERNAL_ERROR = 1
INTERRUPTED = 130
LEAST_SECONDS = 5.0

DESCRIPTION = """\
Finds out whether a Python process is stuck, where it is stuck, and what it is
waiting for, even if it was started without a capture. Reads its stacks once a
second (with py-spy), and its threads, system calls, memory and child processes
(from /proc). The process is not stopped, and nothing is written. Linux only.
"""

EPILOG = """\
examples:
  stall-analyze attach 4711
  stall-analyze attach 4711 --threads      with the stack of every thread
  stall-analyze attach 4711 --all-ranks    with the rest of its job

what it needs:
  pip install 'tensorboard-plugin-stall[attach]', in any Python. Run it as the
  user who owns the process, or as root. If the kernel restricts who may read
  other processes (kernel.yama.ptrace_scope is 1 or more), you must be root.

exit codes:
  0  the process was examined
  2  it could not be examined; the message says why
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        _attach(options)
    except Refused as refused:
        _say(str(refused))
        if isinstance(refused, StacksRefused):
            with suppress(Refused, OSError):  # it may have ended in the meantime
                _print(kernel_view(options.pid))
        return REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        _say(f"internal error: {type(error).__name__}: {error}")
        return INTERNAL_ERROR
    return 0


def _parser() -> argparse.ArgumentParser:
    made = ArgumentParser(
        prog=PROGRAM,
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("pid", metavar="PID", type=_pid, help="process id")
    made.add_argument(
        "--seconds",
        type=_seconds,
        default=LEAST_SECONDS,
        help="how long to watch the process (at least 5, the default)",
    )
    made.add_argument(
        "--all-ranks",
        action="store_true",
        help="also examine all other processes of the same job on this machine",
    )
    made.add_argument("--threads", action="store_true", help="show the stack of every thread")
    made.add_argument("--json", action="store_true", help="print JSON")
    made.add_argument("--no-color", action="store_true", help="no color; NO_COLOR does the same")
    return made


def _pid(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"not a process id: {text!r}")
    if int(text) == os.getpid():
        raise argparse.ArgumentTypeError("that is the process id of this command itself")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not LEAST_SECONDS <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be at least {LEAST_SECONDS:.0f} seconds")
    return seconds


def _attach(options: argparse.Namespace) -> None:
    job = attached_job(options.pid, options.seconds, options.all_ranks)
    if options.json:
        _print(as_json(job))
    else:
        plain = options.no_color or bool(os.environ.get("NO_COLOR"))
        _print(as_text(job, sys.stdout, options.threads, plain))


def _say(message: str) -> None:
    print(f"{PROGRAM}: {message}", file=sys.stderr)


def _print(text: str) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a name may not fit the terminal's encoding
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
