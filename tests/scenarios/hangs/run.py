"""Runs every hanging program twice, and ends it once with SIGTERM and once with SIGKILL.

One that ends by itself runs once.

python -m tests.scenarios.hangs.run [names…] [--workdir DIR] [--list]

DIR/<name>/<term|kill|itself>/ then holds logs/ with the capture, output.txt, and truth.json with
what the analyzer should say of it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from stall_analyzer.captures.held_stacks import read_dump
from tb_stall_plugin.capture.command import environment
from tests.capture.capture_logs import records
from tests.scenarios.hangs.table import BY_NAME, HANGS, Hang
from tests.scenarios.runner import QUIET, all_known, emptied, parser, started

ITSELF = "itself"
SIGNALS = {"term": signal.SIGTERM, "kill": signal.SIGKILL}
PATIENCE_S = 120.0  # for TensorFlow to start, train, hang, and the watchdog to see it
GRACE_S = 1.0  # from SIGTERM to SIGKILL, where SIGTERM ends nothing
END_S = 15.0  # for last words; a cluster gives thirty seconds
HANG_AFTER_S = 8.0


def main(arguments: Sequence[str] | None = None) -> int:
    place = Path("build/hangs")
    known_options = parser("tests.scenarios.hangs", __doc__, "program", workdir=place)
    options = known_options.parse_args(arguments)
    if not all_known(options.names, BY_NAME, "program"):
        return 2
    chosen = [BY_NAME[name] for name in options.names] or HANGS
    if options.list:
        for hang in chosen:
            print(f"{hang.name:20} {hang.status:6} {hang.bucket:14} {hang.description}")
        return 0
    problems = 0
    for hang in chosen:
        for ending in (ITSELF,) if hang.ends_itself else SIGNALS:
            problem = capture(hang, ending, options.workdir / hang.name / ending)
            problems += problem is not None
            print(f"{hang.name:20} {ending:5} {problem or 'captured'}", flush=True)
    return 1 if problems else 0


def capture(hang: Hang, ending: str, folder: Path) -> str | None:
    """What went wrong, if anything did."""
    logs = emptied(folder) / "logs"
    logs.mkdir()
    truth = {**hang.truth, "signal": ending}
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    command = ["tests.scenarios.hangs.programs", hang.name, str(logs)]
    child = started(command, folder / "output.txt", _environment(hang, logs), own_session=True)
    try:
        if ending == ITSELF:
            return _failed(child, logs)
        return _watched(hang, child, logs) or _ended(hang, child, SIGNALS[ending], logs)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # and with it a second worker
        child.wait()


def _environment(hang: Hang, logs: Path) -> dict[str, str]:
    given = {**os.environ, **QUIET}
    return environment(given, str(logs), HANG_AFTER_S) if hang.is_unchanged else given


def _failed(child: subprocess.Popen[bytes], logs: Path) -> str | None:
    """Waits until it has ended, by an exception that is on record."""
    try:
        code = child.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        return "it did not end"
    if code != 1 or not any(dump["reason"] == "exception" for dump in dumps(logs)):
        return f"it ended with {code}, and no exception is on record"
    return None


def _watched(hang: Hang, child: subprocess.Popen[bytes], logs: Path) -> str | None:
    """Until it hangs, and that is on record."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not any(dump["reason"] == "no_step" for dump in dumps(logs)):
        if child.poll() is not None:
            return f"it ended by itself, with {child.returncode}; see output.txt"
        if time.monotonic() > deadline_s:
            return "no hang was noticed"
        time.sleep(0.5)
    time.sleep(hang.watched_s)
    return None


def dumps(logs: Path) -> list[dict[str, Any]]:
    """Those of the event files, and those of a process in which no Python runs."""
    files = sorted(logs.glob("events.out.tfevents.*.stall"))
    held = [vars(dump) for file in files if (dump := read_dump(str(file))) is not None]
    return [*records(logs, "dump"), *held]


def _ended(hang: Hang, child: subprocess.Popen[bytes], number: int, logs: Path) -> str | None:
    """Ends the recorded process, and checks that it left what it should."""
    child.send_signal(number)
    if not hang.heeds_sigterm:  # what clusters do, though not as soon
        time.sleep(GRACE_S)
        number = signal.SIGKILL
        child.send_signal(number)
    try:
        code = child.wait(END_S)
    except subprocess.TimeoutExpired:
        return f"still alive {END_S:g} s after signal {number}"
    if code != -number:
        return f"ended with {code} instead of {-number}"
    last_words = [*dumps(logs), *records(logs, "end")]
    said = sum(record["reason"] == "sigterm" for record in last_words)
    if number == signal.SIGTERM and said != 2:
        return "it left no last words"
    return None


if __name__ == "__main__":
    sys.exit(main())
