"""What is read from a capture, whole, cut or written by somebody else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from stall_analyzer.captures.capture_records import ThreadSettings
from stall_analyzer.captures.record_json import read_record, to_json
from stall_analyzer.events.event_files import read_events
from stall_analyzer.model.event_log import Capture, EventLog
from stall_analyzer.model.runs import EventFile, Run
from tests import captures as write
from tests import event_files
from tests.captures import GENERATOR, IN_THE_STEP, START_NS, native, thread

LOOK = {
    "step": 3, "idle_s": 5.0, "limit_s": 60.0, "phase": "train_batch", "cpu_s": 1.5,
    "threads": [
        {"name": "a", "main": True, "count": 1, "wait": "futex", "frames": ["a.py:1 f"], "on": "",
         "keeps_alive": True, "ran_ns": 5, "turns": 2,
         "loop": {"word": "while", "line": 1, "last": 2, "is_empty": False, "has_no_end": False},
         "waits_for": {"id": 7, "name": "self.lock"}, "holds": [{"id": 8, "name": "other"}]},
    ],
    "children": [{"pid": 9, "name": "python", "state": "S", "wait": "read", "cpu_s": 0.5}],
}  # fmt: skip
DUMP = {
    **LOOK, "kind": "dump", "reason": "no_step", "memory": {"rss_bytes": 5e8},
    "native": [
        {"name": "python3", "state": "S", "wait": "futex", "count": 2, "on": "", "python": True},
    ],
}  # fmt: skip
WINDOW = {"kind": "window", "reason": "start", "first_step": 0}
CLOSED = {**WINDOW, "last_step": 0, "ended_by": "plan"}
# Each kind of record, as in capture_format.md.
ON_DISK: list[dict[str, object]] = [
    {
        "kind": "start", "format": 1, "tool": "0.1.0", "host": "box", "pid": 7, "parent": 1,
        "python": "3.11.4", "tensorflow": "2.21.0", "keras": None,
        "backend": "tensorflow", "devices": ["CPU:0"], "cores": 8, "bfloat16": True,
        "threads": {"intra_op": 0, "inter_op": 0},
        "task": {"type": "worker", "index": 1}, "cluster": {"worker": ["a:1", "b:1"]},
        "hang_after_s": None,
    },
    {"kind": "model", "optimizer": "Adam", "parameters": 9, "layers": ["a"], "probed": True,
     "why": None},
    {"kind": "mark", "what": "fit_begin", "epoch": None, "step": 0},
    {**WINDOW, "what": "opened"},
    {**CLOSED, "what": "saved", "session": "2024_01_01", "seconds": 0.0},
    {**CLOSED, "what": "failed", "why": "no room left"},
    {"kind": "beat", **LOOK},
    DUMP,
    {**DUMP, "interpreter_held": True},
    {**DUMP, "error": {"type": "ValueError", "text": "no", "frames": ["a.py:1 f"],
                       "uncaught": True}},
    {"kind": "note", "level": "info", "text": "no gradients"},
    {"kind": "end", "reason": "exit"},
]  # fmt: skip


@pytest.mark.parametrize("on_disk", ON_DISK, ids=lambda on_disk: on_disk["kind"])
def test_a_record_is_written_as_it_is_read_key_by_key(on_disk: dict[str, object]) -> None:
    record = read_record(json.dumps({**on_disk, "ns": 7}))
    assert record is not None and record.kind == on_disk["kind"]
    assert json.loads(to_json(replace(record, ns=0), now_ns=8)) == {**on_disk, "ns": 8}


def only(log: EventLog) -> Capture:
    assert log.capture is not None
    assert len(log.captures) == 1
    return log.capture


def texts(log: EventLog) -> str:
    return " ".join(note.text for note in log.notes)


def test_a_process_has_one_capture_with_records_and_scalars(tmp_path: Path) -> None:
    log = write.read(
        tmp_path,
        [
            write.start(cores=8, threads={"intra_op": 1, "inter_op": 0}, devices=["CPU:0"]),
            write.record("model", optimizer="Adam", layers=["a", "b"], probed=True),
            write.mark("epoch_begin", 1.0),
            write.scalars(2.5, step=3, loss=0.5, gradient_norm__a=2.0),
            write.record("end", 9.0, reason="exit"),
        ],
    )
    capture = only(log)
    assert capture.environment.cores == 8
    assert capture.environment.threads == ThreadSettings(intra_op=1, inter_op=0)
    assert capture.model is not None and capture.model.layers == ("a", "b")
    assert [(m.what, m.ns - START_NS) for m in capture.marks] == [("epoch_begin", 10**9)]
    loss = capture.series["loss"]
    assert (loss.step[0], loss.value[0]) == (3, 0.5)
    assert "gradient_norm/a" in capture.series
    assert capture.end is not None and capture.end.reason == "exit"
    assert capture.last_ns == START_NS + 9 * 10**9
    assert log.train == {}, "its scalars are not curves of the run itself"
    assert log.notes == ()


def test_looks_are_in_order_and_keep_their_stacks(tmp_path: Path) -> None:
    stacks = [thread(*IN_THE_STEP, main=True), thread(*GENERATOR)]
    log = write.read(
        tmp_path,
        [
            write.start(),
            write.record(
                "dump", 9.0, reason="no_step", step=3, idle_s=8.0, phase="train_batch",
                cpu_s=1.5, limit_s=7.0, threads=stacks, native=[native("futex")],
                memory={"rss_bytes": 5e8},
            ),
            write.record(
                "beat", 6.0, step=3, idle_s=5.0, phase="train_batch", cpu_s=1.4, threads=stacks
            ),
        ],
    )  # fmt: skip
    beat, dump = only(log).looks
    assert (beat.idle_s, dump.idle_s) == (5.0, 8.0)
    assert beat.main is not None and beat.main.frames == IN_THE_STEP
    assert only(log).dumps[0].native[0].wait == "futex"
    assert only(log).dumps[0].memory["rss_bytes"] == 5e8


def test_a_long_dump_is_read_whole(tmp_path: Path) -> None:
    frames = [f"/home/me/deep.py:{n} f" for n in range(4000)]  # some 100 kB
    beat = write.record(
        "beat", step=0, idle_s=5.0, phase="startup", threads=[thread(*frames, main=True)]
    )
    (look,) = only(write.read(tmp_path, [write.start(), beat])).beats
    assert len(look.threads[0].frames) == 4000


@pytest.mark.parametrize(
    "text",
    ["{", "[1]", '"text"', "{}", '{"kind": 3, "ns": 5}', '{"kind": "mark"}',
     '{"kind": "mark", "ns": -1}', '{"kind": "mark", "ns": 1e30}', "[" * 100_000],
)  # fmt: skip
def test_an_invalid_record_becomes_a_note(tmp_path: Path, text: str) -> None:
    broken = write.raw_record("mark", text)
    log = write.read(tmp_path, [write.start(), broken, write.mark("fit_begin", 1.0)])
    assert [mark.what for mark in only(log).marks] == ["fit_begin"]
    assert "could not be understood and were skipped: 1" in texts(log)


def test_fields_of_any_type_and_unknown_kinds_do_no_harm(tmp_path: Path) -> None:
    log = write.read(
        tmp_path,
        [
            write.start(task="worker", workers=0, pid="7", threads=[1], devices="CPU", cores=True),
            write.record("weather", 1.0, sunny=True),
            write.record("beat", 2.0, step="3", idle_s=None),
            write.record("dump", 3.0, step=3, idle_s=6, threads={"a": 1}, native=5, memory=[]),
            write.record("window", 4.0, what=1, seconds="long"),
            write.record("dump", 4.5, step=3, idle_s=10**400),
            write.record("note", 5.0, level="shouting", text="The disk was full."),
        ],
    )
    capture = only(log)
    assert capture.environment.cores is None and capture.environment.pid is None
    assert capture.beats == ()
    assert [dump.threads for dump in capture.dumps] == [()]
    assert "The disk was full." in texts(log)


def test_what_the_capture_says_is_missing_is_said_in_the_report(tmp_path: Path) -> None:
    failed = write.record("window", 1.0, what="failed", reason="start", why="no room left")
    log = write.read(tmp_path, [write.start(), failed])
    assert "A profile could not be taken: no room left." in texts(log)


def test_another_format_is_read_with_a_warning(tmp_path: Path) -> None:
    assert "Another version" in texts(write.read(tmp_path, [write.start(format=2)]))


def test_a_file_that_was_cut_is_used_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / write.file_name()
    whole = write.start() + write.mark("fit_begin", 1.0) + write.mark("epoch_begin", 2.0)
    path.write_bytes(whole[:-10])
    log = event_files_read(path)
    assert [mark.what for mark in only(log).marks] == ["fit_begin"]
    assert "read only in part" in texts(log)


def event_files_read(*paths: Path) -> EventLog:
    files = tuple(EventFile(str(path), "run", path.stat().st_size) for path in paths)
    return read_events(Run(".", ".", (), files))


def test_the_last_start_record_counts(tmp_path: Path) -> None:
    log = write.read(tmp_path, [write.start(devices=None), write.start(devices=["GPU:0"])])
    assert only(log).environment.devices == ("GPU:0",)


def test_several_files_of_one_process_are_one_capture(tmp_path: Path) -> None:
    """At a URL, a file that has grown large is followed by another."""
    first, second = (tmp_path / write.file_name(n=n) for n in range(2))
    first.write_bytes(write.start() + write.steps(0, 3, 1.0))
    second.write_bytes(write.start() + write.scalars(4.0, 3, step_seconds=1.0))
    capture = only(event_files_read(second, first))
    assert list(capture.series["step_seconds"].step) == [0, 1, 2, 3]


def test_a_script_that_starts_the_other_worker_is_the_one_that_is_left(tmp_path: Path) -> None:
    """It sets its own TF_CONFIG after its capture has begun."""
    log = write.read(
        tmp_path,
        [write.start(pid=1), write.scalars(1.0, 0, loss=1.0)],
        [
            write.start({"type": "worker", "index": 1}, 2, pid=2, parent=1),
            write.scalars(1.0, 0, loss=2.0),
        ],
    )
    assert [str(capture.environment.task) for capture in log.captures] == ["worker 0", "worker 1"]


def test_workers_are_apart_and_the_first_of_them_leads(tmp_path: Path) -> None:
    tasks = [{"type": "worker", "index": index} for index in (1, 0)]
    log = write.read(
        tmp_path,
        [write.start(tasks[0], 2, pid=1), write.scalars(1.0, 0, loss=1.0)],
        [write.start(tasks[1], 2, pid=2), write.scalars(1.0, 0, loss=2.0)],
    )
    assert [str(capture.environment.task) for capture in log.captures] == ["worker 0", "worker 1"]
    assert [c.series["loss"].value[0] for c in log.captures] == [2.0, 1.0]
    assert log.captures[0].trace_name == "box-worker-0"
    assert [str(task) for task in log.captures[0].environment.training_tasks] == [
        "worker 0", "worker 1",
    ]  # fmt: skip


def test_helpers_of_a_training_are_left_out(tmp_path: Path) -> None:
    log = write.read(
        tmp_path, [write.start(pid=1), write.mark("fit_begin", 1.0)], [write.start(pid=2, parent=1)]
    )
    assert only(log).environment.pid == 1


def test_scalars_beside_a_capture_stay_the_runs_own(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.box.1.0"
    own = event_files.record(event_files.scalar("epoch_loss", 0.5))
    path.write_bytes(own + write.start() + write.scalars(1.0, 0, loss=1.0))
    log = event_files_read(path)
    assert list(log.train) == ["epoch_loss"]
    assert list(only(log).series) == ["loss"]
