"""`stall-analyze watch`: how captured runs are doing while they run."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stall_analyzer.cli.argument_parser import ArgumentParser
from stall_analyzer.cli.options import PROGRAM
from stall_analyzer.errors import NothingFound, UnreadableFile

if TYPE_CHECKING:
    from stall_analyzer.cli.watch_views import View
    from stall_analyzer.live.followed_run import RunState
    from stall_analyzer.live.watcher import Watcher

COMMAND = f"{PROGRAM} watch"
INTERNAL_ERROR = 1
LOOK_PAUSE_S = 1.0  # a capture writes once a second
LOOKING_SHARE = 0.1  # of the time, at most: looking must not take the processor away from training

DESCRIPTION = """\
Shows how the captured runs under LOGDIR are doing while they run: epoch and
step, where their time goes, what they are doing right now, and how long the
epoch will take. A run that is over is summarized in one sentence. Ctrl-C ends
this command, not the runs.

It reads what StallCallback, `watch` and `stall-analyze capture` write each
second, and changes nothing. In a terminal, the display is refreshed; to a file
or a pipe, a line is written when something has changed. If LOGDIR does not
exist yet, the command waits until it does.
"""

EPILOG = """\
examples:
  stall-analyze watch logs/
  stall-analyze watch logs/run1 --once   how it is doing right now
  stall-analyze watch logs/ >> watch.log
"""


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        return _watch(options)
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        print(f"{COMMAND}: internal error: {type(error).__name__}: {error}", file=sys.stderr)
        return INTERNAL_ERROR


def _parser() -> argparse.ArgumentParser:
    made = ArgumentParser(
        prog=COMMAND,
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("logdir", metavar="LOGDIR", help="log directory, or a run in it")
    made.add_argument("--once", action="store_true", help="look once and exit")
    made.add_argument("--no-color", action="store_true", help="no color; NO_COLOR does the same")
    return made


def _watch(options: argparse.Namespace) -> int:
    from stall_analyzer.cli.watch_views import view_for  # noqa: PLC0415
    from stall_analyzer.live.watcher import Watcher  # noqa: PLC0415

    watcher = Watcher(options.logdir)
    view = view_for(sys.stdout, options.no_color, options.once)
    told = _Told(watcher, view)
    try:
        while True:
            began_s = time.monotonic()
            states = watcher.look()
            told.tell_of_others(options.logdir)
            over = [state for state in states if state.is_over]
            waiting = _waiting(options.logdir, bool(states), options.once)
            view.show([state for state in states if not state.is_over], waiting)
            for state in over:
                told.tell(state)
            if options.once:
                return 0 if states else NothingFound.exit_code
            took_s = time.monotonic() - began_s
            time.sleep(max(LOOK_PAUSE_S, took_s / LOOKING_SHARE))
    finally:
        view.close()


def _waiting(logdir: str, has_seen: bool, once: bool) -> str:
    """What to say when no run is in progress."""
    if has_seen:
        text = f"No captured run is in progress in {logdir}"
    elif _is_there(logdir):
        text = f"Nothing has been captured in {logdir} yet ({PROGRAM} capture --help explains how)"
    else:
        text = f"{logdir} does not exist yet"
    return f"{text}." if once else f"{text}; waiting."


def _is_there(logdir: str) -> bool:
    from stall_analyzer.files import files  # noqa: PLC0415

    try:
        return files.kind(logdir) is not None
    except UnreadableFile:  # such as a URL that may be reachable later
        return False


class _Told:
    """Summarizes each run once, when it is over, and again if the end of its program changes the
    verdict."""

    def __init__(self, watcher: Watcher, view: View) -> None:
        self._watcher, self._view = watcher, view
        self._ended: dict[tuple[str, int], bool] = {}
        self._sentences: dict[tuple[str, int], str] = {}
        self._has_told_of_others = False

    def tell_of_others(self, logdir: str) -> None:
        """Someone who looks for yesterday's run should not think that it is lost."""
        count = self._watcher.left_out
        if count and not self._has_told_of_others:
            self._has_told_of_others = True
            one, more = "One run that ended earlier is", f"{count:,} runs that ended earlier are"
            runs = one if count == 1 else more
            self._view.tell(f"{runs} not shown; to see all: {PROGRAM} {logdir}")

    def tell(self, state: RunState) -> None:
        run = state.run.name, state.run.attempt
        has_ended = all(process.has_ended for process in state.processes)
        if self._ended.get(run) in (has_ended, True):
            return
        self._ended[run] = has_ended
        sentence = self._watcher.verdict(state)
        if self._sentences.get(run) != sentence:
            self._sentences[run] = sentence
            what = "has ended" if has_ended else "has finished training"
            self._view.tell(f"{state.title} {what}. {sentence}")
