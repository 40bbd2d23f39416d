"""Runs each program twice, with and without a capture, and compares everything else.

python -m tests.scenarios.harm.run [names…] [--workdir DIR] [--list] [--write]

--write puts the table into docs/explanation/harm.md. Packages that not everybody has (tf_keras,
ipykernel, jax, torch) are looked for in DIR/packages/<name>, too; `make harm` installs them there.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.scenarios.harm.capture import KINDS, Kind
from tests.scenarios.harm.child import MODULES
from tests.scenarios.harm.table import write_table
from tests.scenarios.runner import all_known, emptied, parser

PATIENCE_S = 900.0  # TensorFlow takes minutes to start where many want to run at once
READY_S = 400.0
GRACE_S = 30.0  # until SIGKILL, as clusters have it
# How much more there may be than without a capture, after that many further fits.
# Memory is taken and given back in pieces, and on a busy machine a pipe is not free again yet, or a
# file about to be closed. What leaks with each fit comes to far more.
ALLOWED = {"megabytes": 30, "descriptors": 4}
OUR_LINES = re.compile(r"stall-analyze |tb_stall_plugin")
OUR_FRAME = re.compile(r'\s*File ".*tb_stall_plugin[^"]*", line')
NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")


@dataclass(frozen=True)
class Ended:
    """What a program has left."""

    code: int
    said: tuple[str, ...]  # on the console, both streams, without what is ours
    result: dict[str, Any]


@dataclass(frozen=True)
class Compared:
    kind: Kind
    problem: str  # empty: nothing but the capture differs
    skipped: str = ""
    results: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    for module in MODULES:
        importlib.import_module(f"tests.scenarios.harm.{module}")
    known = parser("tests.scenarios.harm", __doc__, "program", workdir=Path("build/harm"))
    known.add_argument(
        "--write", action="store_true", help="the table, into docs/explanation/harm.md"
    )
    options = known.parse_args(arguments)
    if not all_known(options.names, KINDS, "program"):
        return 2
    chosen = [KINDS[name] for name in options.names] or [*KINDS.values()]
    if options.list:
        for kind in chosen:
            print(f"{kind.name:26} {kind.what}")
        return 0
    found = []
    for kind in chosen:
        compared = compare(kind, options.workdir.absolute())
        found.append(compared)
        word = compared.problem or (f"skipped: {compared.skipped}" if compared.skipped else "same")
        print(f"{kind.name:26} {word}", flush=True)
    if options.write:
        write_table(
            Path("docs/explanation/harm.md"), [(c.kind.what, c.problem, c.skipped) for c in found]
        )
    return 1 if any(compared.problem for compared in found) else 0


def compare(kind: Kind, workdir: Path) -> Compared:
    packages = workdir / "packages" / kind.needs
    if kind.needs and not (packages.is_dir() or importlib.util.find_spec(kind.needs)):
        return Compared(kind, "", skipped=f"{kind.needs} is not installed")
    alone = run(kind, emptied(workdir / kind.name / "alone"), packages, None)
    folder = emptied(workdir / kind.name / "captured")
    captured = run(kind, folder, packages, str(folder / "logs"))
    problem = difference(kind, alone, captured)
    return Compared(kind, problem, results=len(alone.result.get("results", ())))


def run(kind: Kind, folder: Path, packages: Path, logdir: str | None) -> Ended:
    command = [sys.executable, *kind.arguments, "-m", "tests.scenarios.harm.child", kind.name]
    command += [str(folder), *([logdir] if logdir else [])]
    if logdir and kind.through:
        ours = [sys.executable, "-m", "stall_analyzer", *kind.through, "--logdir", logdir, "--"]
        command = [*ours, *command]
    given = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **dict(kind.environment)}
    if kind.needs:
        given["PYTHONPATH"] = os.pathsep.join(
            filter(None, (str(packages), given.get("PYTHONPATH")))
        )
    output = folder / "output.txt"
    with output.open("wb") as console:
        child = subprocess.Popen(
            command, env=given, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            if kind.sends:
                _send(child, folder, kind.sends)
            code = child.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            code = child.wait() - 1000  # no program ends with that
    result = folder / "result.json"
    return Ended(
        code,
        tuple(without_ours(output.read_text(errors="replace"), kind.says)),
        json.loads(result.read_text()) if result.exists() else {},
    )


def _send(child: subprocess.Popen[bytes], folder: Path, number: int) -> None:
    until_s = time.monotonic() + READY_S
    while not (folder / "ready").exists() and child.poll() is None:
        if time.monotonic() > until_s:
            return
        time.sleep(0.1)
    time.sleep(0.5)
    child.send_signal(number)
    if number == signal.SIGTERM:
        try:
            child.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            child.kill()


def without_ours(text: str, says: Sequence[str] = ()) -> list[str]:
    """Lines without those of the capture: its sentence on the first epoch, its own frames."""
    kept: list[str] = []
    skip = False
    for line in text.splitlines():
        if skip and line.startswith("    ") and not line.lstrip().startswith("File "):
            continue
        skip = bool(OUR_FRAME.match(line))
        is_ours = skip or OUR_LINES.search(line) or any(each in line for each in says)
        if not is_ours and line.strip():
            kept.append(" ".join(NUMBERS.sub("N", line).split()))
    return kept


def difference(kind: Kind, alone: Ended, captured: Ended) -> str:
    """In words; empty if there is none."""
    if captured.code != alone.code:
        return f"ends with {captured.code} instead of {alone.code}"
    ours, theirs = captured.result, alone.result
    if ours.get("results") != theirs.get("results"):
        return "other weights or results"
    traced, expected = (Counter(each.get("traced", {})) for each in (ours, theirs))
    if traced != expected:
        return f"traced {dict(traced - expected)} more, {dict(expected - traced)} less"
    for what, count in ours.get("left", {}).items():
        without = theirs["left"][what]
        if count - without > ALLOWED.get(what, 0):
            return f"{count:g} {what} more than before, {without:g} without a capture"
    if captured.said != alone.said:
        lines = difflib.unified_diff(alone.said, captured.said, "alone", "captured", "", "", 0, "")
        return "says something else: " + " | ".join([*lines][3:8])
    return ""


if __name__ == "__main__":
    sys.exit(main())
