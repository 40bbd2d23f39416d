"""Reads what a capture has written, and runs programs that write one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

from tensorboard.compat.proto import event_pb2

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.files.tfrecord import RecordFile, is_intact
from tests.patience import PATIENCE_S, happens


def events(folder: Path, was_killed: bool = False) -> list[Any]:
    """All events of all files, in the order in which they were written. `was_killed`: while it
    wrote, perhaps, so that the kernel took a part of the last record only."""
    found = []
    for path in sorted(folder.glob("events.out.tfevents.*")):
        with path.open("rb") as stream:
            file = RecordFile(stream)
            for record in file:
                whole = file.whole(record)
                if whole is None and was_killed:
                    break
                assert whole is not None and is_intact(whole)
                found.append(event_pb2.Event.FromString(whole.data))
            assert was_killed or file.damage is None, file.damage
    return found


def records(
    folder: Path, kind: str | None = None, was_killed: bool = False
) -> list[dict[str, Any]]:
    found = [
        json.loads(value.tensor.string_val[0])
        for event in events(folder, was_killed)
        for value in event.summary.value
        if value.tag.startswith(Tag.RECORD)
    ]
    return [record for record in found if kind in (None, record["kind"])]


def scalars(folder: Path, was_killed: bool = False) -> dict[str, list[tuple[int, float]]]:
    """Pairs (step, value) by tag."""
    found: dict[str, list[tuple[int, float]]] = {}
    for event in events(folder, was_killed):
        for value in event.summary.value:
            if value.HasField("simple_value"):
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def start(script: str, *arguments: object, **variables: str) -> subprocess.Popen[str]:
    """Starts a separate Python program, with its output in pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", dedent(script), *map(str, arguments)],
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(script: str, *arguments: object, **variables: str) -> tuple[int, str]:
    """Its exit code, and what it wrote to stderr."""
    child = start(script, *arguments, **variables)
    _, said = child.communicate(timeout=PATIENCE_S)
    return child.returncode, said


def until(condition: Callable[[], object]) -> None:
    def holds() -> object:
        try:
            return condition()
        except AssertionError:  # a record is still being written
            return False

    assert happens(holds), "it did not happen"
