"""Small valid logs of every kind that is read: a path and its bytes for each file."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from tests import captures, event_files, pytorch_traces, traces, xspace
from tests.dumps import Dump

Log: TypeAlias = dict[str, bytes]

CORPUS = Path(__file__).with_name("corpus")
SESSION = "plugins/profile/2023_11_14_22_13_20"
START_NS = event_files.START_S * 10**9


def _written(write: Callable[[Path], object]) -> Log:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        files = (path for path in sorted(Path(folder).rglob("*")) if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _trace(host: int = 0) -> bytes:
    python, work = traces.steps(10 + host, 4, pause_ms=3, busy=0.6)
    waits = [one for step in range(4) for one in traces.wait(11 + 13 * step, 14 + 13 * step, step)]
    clock = traces.clock(int(START_NS), 0.2)
    return xspace.space(traces.trainer(python, work, ("tf_data", waits)), clock)


def _events() -> bytes:
    layers = [{"class_name": "Dense", "config": {"name": "d", "units": 3, "activation": "relu"}}]
    config = {"class_name": "Sequential", "config": {"name": "s", "layers": layers}}
    records = [event_files.file_version(), event_files.event(event_files.model(json.dumps(config)))]
    framed = b"".join(map(event_files.framed, records[:1]))
    start_s = event_files.START_S
    for step in range(12):
        loss = event_files.scalar("batch_loss", 2.5 / (1 + step))
        framed += event_files.record(loss, at_s=start_s + 0.1 * step, step=step)
    for epoch in range(2):
        values = [event_files.scalar("epoch_loss", 1.0), event_files.histogram("d/kernel", 4)]
        framed += event_files.record(*values, at_s=start_s + 1.3 * (epoch + 1), step=epoch)
    framed += event_files.record(event_files.model(json.dumps(config)), at_s=start_s + 0.01)
    return framed


def _old_trace() -> bytes:
    names = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/host:CPU"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "python"}},
    ]
    events = [
        {
            "ph": "X", "pid": 1, "tid": 2, "ts": 1000.0 * i, "dur": 900.5, "name": name,
            "args": {"step_num": str(i), "long_name": name, "id": i},
        }
        for i, name in enumerate(["FunctionRun", "train 1", "EagerLocalExecute", "MatMul"] * 3)
    ]  # fmt: skip
    return gzip.compress(json.dumps({"traceEvents": names + events}).encode(), mtime=0)


def _dump(folder: Path) -> None:
    dump = Dump().source("/home/me/train.py", "def loss(p):", "    return -log(p)")
    dump.frame("f1", 0, 2, "loss").op("Log", "loss/Log", "p", frames=["f1"])
    dump.op("MatMul", "dense/MatMul", "x").tensor("dense/MatMul", zero=8).tensor("loss/Log", nan=2)
    dump.eager("Add", (1, 2), (3,), inf=1).call().write(folder)


def _stuck(folder: Path) -> None:
    """A capture that looked at a hang, and the console of its job."""
    stack = captures.thread("MainThread", "/home/me/train.py:7 wait", main=True)
    look = {"idle_s": 30.0, "threads": [stack], "processor_s": 1.0}
    path = folder / captures.file_name()
    records = [
        captures.start(), captures.mark("epoch_begin", 1.0), captures.steps(1.0, 5, 0.5),
        captures.record("beat", 20.0, **look),
        captures.record("dump", 30.0, reason="no step", **look),
    ]  # fmt: skip
    first = event_files.framed(event_files.file_version())
    path.write_bytes(first + b"".join(records))
    text = 'Epoch 1/2\n 5/10 [====>.....]\nTraceback (most recent call last):\n  File "train.py", '
    text += (
        "line 7, in <module>\n    wait()\nValueError: no\nslurmstepd: error: *** JOB CANCELLED\n"
    )
    (folder / "job.out").write_text(text, encoding="utf-8")


def seeds() -> dict[str, Log]:
    """By name, and those of the corpus: cases that once did harm."""
    train = {"train/" + event_files.file_name(): _events()}
    step = pytorch_traces.step(1, 0, 2, 10)
    found = {
        "ordinary": {**train, f"{SESSION}/vm.xplane.pb": _trace()},
        "cluster": {f"{SESSION}/a.xplane.pb": _trace(), f"{SESSION}/b.xplane.pb": _trace(2)},
        "events": {**train, "validation/" + event_files.file_name(pid=101): _events()},
        "old trace": {f"{SESSION}/vm.trace.json.gz": _old_trace()},
        "pytorch": _written(lambda folder: pytorch_traces.write(folder / "x.pt.trace.json", *step)),
        "debugger": {**train, **_written(_dump)},
        "books": _written(captures.write_booked_run),
        "stuck": _written(_stuck),
    }
    for case in sorted(path for path in CORPUS.iterdir() if path.is_dir()):
        inside = (path for path in case.rglob("*") if path.is_file())
        found[case.name] = {path.relative_to(case).as_posix(): path.read_bytes() for path in inside}
    return found
