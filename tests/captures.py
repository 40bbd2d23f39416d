"""Captures as a training process leaves them, written by hand according to capture_format.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stall_analyzer.captures.capture_format import FORMAT, Tag
from stall_analyzer.events.event_files import read_events
from stall_analyzer.model.event_log import Capture, EventLog, Series
from stall_analyzer.model.runs import EventFile, Run
from tests import event_files as write

NS = 1_000_000_000
START_S = write.START_S
START_NS = round(START_S) * NS

SITE = "/env/lib/python3.11/site-packages"
LIBRARY = "/usr/lib/python3.11"
# A main thread that waits for a train step of Keras 3 under TensorFlow 2.21.
IN_THE_STEP = (
    f"{SITE}/tensorflow/python/eager/execute.py:53 quick_execute",
    f"{SITE}/tensorflow/python/eager/context.py:1700 Context.call_function",
    f"{SITE}/keras/src/backend/tensorflow/trainer.py:399 TensorFlowTrainer.fit",
    "/home/me/train.py:88 <module>",
)
# The same thread in one of the user's callbacks.
IN_A_CALLBACK = (
    "/home/me/train.py:41 Report.on_train_batch_end",
    f"{SITE}/keras/src/callbacks/callback_list.py:166 CallbackList.on_train_batch_end",
    f"{SITE}/keras/src/backend/tensorflow/trainer.py:401 TensorFlowTrainer.fit",
    "/home/me/train.py:88 <module>",
)
GENERATOR = (
    "/home/me/data.py:12 batches",
    f"{SITE}/tensorflow/python/data/ops/from_generator_op.py:210 generator_next_fn",
    f"{SITE}/tensorflow/python/ops/script_ops.py:263 FuncRegistry.__call__",
)
QUEUE = (f"{LIBRARY}/threading.py:320 Condition.wait", f"{LIBRARY}/queue.py:171 Queue.get")


def record(kind: str, at_s: float = 0.0, **fields: object) -> bytes:
    """A record `at_s` seconds after the beginning, as the capture writes it."""
    ns = START_NS + round(at_s * NS)
    text = json.dumps({"kind": kind, "ns": ns, **fields})
    return raw_record(kind, text, at_s)


def raw_record(kind: str, text: str, at_s: float = 0.0) -> bytes:
    body = write.tensor(write.STRING, write.message(8, text.encode()))
    value = write.tensor_value(Tag.RECORD + kind, body, "text")
    return write.record(value, at_s=START_S + at_s)


def start(task: object = None, workers: int = 0, **fields: object) -> bytes:
    cluster = {"worker": [f"localhost:{n}" for n in range(workers)]} if workers else None
    usual = {"format": FORMAT, "host": "box", "pid": 100, "python": "3.11.4"}
    return record("start", 0.0, **{**usual, "task": task, "cluster": cluster, **fields})


def mark(what: str, at_s: float, epoch: int | None = 0, step: int = 0) -> bytes:
    return record("mark", at_s, what=what, epoch=epoch, step=step)


def scalars(at_s: float, step: int, **values: float) -> bytes:
    """Several values of one moment; `__` in a name means a slash."""
    named = [write.simple(Tag.ALL + tag.replace("__", "/"), v) for tag, v in values.items()]
    return write.record(*named, at_s=START_S + at_s, step=step)


def steps(first_s: float, count: int, each_s: float) -> bytes:
    return b"".join(
        scalars(first_s + (n + 1) * each_s, n, step_seconds=each_s) for n in range(count)
    )


def thread(
    *frames: str, main: bool = False, wait: str = "", name: str = "", **more: object
) -> dict[str, object]:
    usual = {"name": name, "main": main, "frames": list(frames), "count": 1, "wait": wait}
    return {**usual, **more}


def native(wait: str, name: str = "python3", state: str = "S", count: int = 1) -> dict[str, object]:
    return {"name": name, "state": state, "wait": wait, "count": count}


def file_name(start_s: float = START_S, pid: int = 100, host: str = "box", n: int = 0) -> str:
    return write.file_name(start_s, pid, host, n).replace(".v2", ".stall")


def read(folder: Path, *files: Sequence[bytes]) -> EventLog:
    """What is read from capture files with these records, one process each."""
    event_files = []
    for index, parts in enumerate(files):
        path = folder / file_name(START_S, pid=100 + index)
        path.write_bytes(write.framed(write.file_version()) + b"".join(parts))
        event_files.append(EventFile(str(path), "run", path.stat().st_size))
    return read_events(Run(".", str(folder), (), tuple(event_files)))


def series(values: Sequence[float], first_s: float = 0.0, every_s: float = 1.0) -> Series:
    """A scalar of the first steps, one after another."""
    at = START_NS + np.array([round((first_s + n * every_s) * NS) for n in range(len(values))])
    return Series(
        np.arange(len(values), dtype=np.int64), at.astype(np.int64), np.array(values, float)
    )


def log(*captures: Capture, **train: Series) -> EventLog:
    """An event log with nothing else in it."""
    return EventLog(train, {}, None, START_NS, None, None, 1, captures=captures)


def stacks(at_s: float, *seen: tuple[Sequence[str], str, str, bool], **source: str) -> bytes:
    """Stacks since the beginning, each for 2 s: frames, account, item, and whether in the
    background."""
    frames = [frame for lines, *_ in seen for frame in lines]
    samples = [
        {"account": account, "item": item, "background": background, "stack": n}
        for n, (_, account, item, background) in enumerate(seen)
    ]
    return record(
        "stacks",
        at_s,
        began_ns=START_NS,
        frames={str(n): frame for n, frame in enumerate(frames)},
        stacks={str(n): [*map(frames.index, lines)] for n, (lines, *_) in enumerate(seen)},
        samples=[{**sample, "count": 60, "seen_ns": 2 * NS} for sample in samples],
        source=source,
    )


def write_booked_run(folder: Path) -> Path:
    """The log of one epoch whose books a capture kept: its callback took two of three seconds."""
    hook = "Report.on_train_batch_end"
    item = {"account": "callback", "name": hook, "where": "", "count": 9, "spent_ns": 2 * NS}
    books = {
        "began_ns": START_NS, "phase": "train", "epoch": 0, "lasted_ns": [3 * NS], "steps": [9],
        "calls": [9], "spent_ns": {"step": [NS], "callback": [2 * NS]}, "items": [item],
    }  # fmt: skip
    source = {"/home/me/train.py:41": "json.dump(logs, file)"}
    records = (
        start(), mark("fit_begin", 0.0, None), mark("epoch_begin", 0.0),
        record("books", 2.9, **books), 
        stacks(2.9, (IN_A_CALLBACK, "callback", hook, False), **source),
        mark("epoch_end", 3.0, step=9), mark("fit_end", 3.0, None, 9),
        record("end", 3.0, reason="exit"),
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name()
    path.write_bytes(write.framed(write.file_version()) + b"".join(records))
    return folder
