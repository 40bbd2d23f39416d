"""What is read from event files, whole, cut or broken."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import fsspec
import google_crc32c
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stall_analyzer.discover.discover import discover
from stall_analyzer.events.event_files import read_events
from stall_analyzer.files import tfrecord
from stall_analyzer.files.tfrecord import HEAD_BYTES, masked_crc32c
from stall_analyzer.model.event_log import EventLog, HistogramSums
from stall_analyzer.model.runs import EventFile, Run
from tests import corpus
from tests import event_files as write
from tests.xspace import varint

MODEL = json.dumps({"class_name": "Sequential", "config": {"name": "m", "layers": []}})


def values(log: EventLog, tag: str) -> list[float]:
    return [float(value) for value in log.train[tag].value]


def test_the_checksum_in_python_is_the_one_in_c() -> None:
    assert tfrecord.crc32c_in_python(b"123456789") == google_crc32c.value(b"123456789")


def test_the_checksum_is_crc32c_masked() -> None:
    # The check value of CRC-32C over "123456789" is e3069283.
    rotated = (0xE3069283 >> 15 | 0xE3069283 << 17) & 0xFFFF_FFFF
    assert masked_crc32c(b"123456789") == (rotated + 0xA282EAD8) & 0xFFFF_FFFF


def test_a_scalar_has_its_step_and_the_wall_time_in_nanoseconds(tmp_path: Path) -> None:
    record = write.summary(write.scalar("epoch_loss", 0.5), at_s=1_700_000_000.25, step=3)
    series = write.read(tmp_path, write.framed(record)).train["epoch_loss"]
    assert (series.step[0], series.wall_ns[0], series.value[0]) == (
        3, 1_700_000_000_250_000_000, 0.5,
    )  # fmt: skip


def test_steps_of_any_size_are_read_whichever_record_is_first(tmp_path: Path) -> None:
    steps = [0, 5, 127, 128, 300_000, 2**40, -1]
    records = [write.summary(write.scalar("t", 0.5), step=step) for step in steps + steps]
    log = write.read(tmp_path, b"".join(map(write.framed, records)))
    assert list(log.train["t"].step) == steps + steps


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(write.simple("t", 0.5), 0.5, id="simple_value"),
        pytest.param(write.scalar("t", 0.5), 0.5, id="float content"),
        pytest.param(
            write.tensor_value("t", write.tensor(write.DOUBLE, write.content("<d", 0.1))),
            0.1, id="double content"),
        pytest.param(
            write.tensor_value("t", write.tensor(write.HALF, write.number(13, 0x3800))),
            0.5, id="half_val"),
        pytest.param(
            write.tensor_value("t", write.tensor(write.BFLOAT16, write.number(13, 0x3F00))),
            0.5, id="bfloat16 as half_val"),
        pytest.param(
            write.tensor_value("t", write.tensor(write.BFLOAT16, write.content("<H", 0x3F00))),
            0.5, id="bfloat16 content"),
        pytest.param(
            write.tensor_value("t", write.tensor(write.INT64, write.number(10, -7))),
            -7.0, id="int64_val"),
        pytest.param(
            write.tensor_value("t", write.tensor(write.INT32, write.message(7, varint(300)))),
            300.0, id="packed int_val"),
        pytest.param(
            write.tensor_value("t", write.tensor(write.FLOAT, write.message(5, b"\0\0\0\x3f"))),
            0.5, id="packed float_val"),
        pytest.param(
            write.tensor_value("t", write.tensor(write.FLOAT)), 0.0, id="zero is left out"),
    ],
)  # fmt: skip
def test_every_way_to_write_a_scalar(tmp_path: Path, value: bytes, expected: float) -> None:
    assert values(write.read(tmp_path, write.record(value)), "t") == [expected]


def test_nan_and_infinity_are_kept(tmp_path: Path) -> None:
    data = b"".join(
        write.record(write.scalar("loss", value)) for value in (math.nan, math.inf, -math.inf)
    )
    first, *others = values(write.read(tmp_path, data), "loss")
    assert math.isnan(first)
    assert others == [math.inf, -math.inf]


@pytest.mark.parametrize(
    "value",
    [
        write.histogram("t", 720),
        write.tensor_value("t", write.tensor(write.FLOAT, dims=(2,)), None),
        write.tensor_value("t", write.tensor(write.STRING, write.message(8, b"words")), "text"),
        write.scalar("t", 1.0, plugin="pr_curves"),
    ],
)
def test_other_kinds_of_summary_are_not_scalars(tmp_path: Path, value: bytes) -> None:
    log = write.read(tmp_path, write.record(value))
    assert (dict(log.train), log.records, log.notes) == ({}, 1, ())


def test_a_tag_keeps_the_plugin_that_its_first_record_named(tmp_path: Path) -> None:
    first = write.record(write.scalar("t", 1.0, plugin="pr_curves"))
    second = write.record(write.scalar("t", 1.0, plugin=None))
    assert "t" not in write.read(tmp_path, first + second).train


def test_long_records_are_stepped_over_and_the_graph_leaves_its_time(tmp_path: Path) -> None:
    data = b"".join(
        write.framed(record)
        for record in (
            write.graph(3 * HEAD_BYTES, at_s=1_700_000_001),
            write.summary(write.histogram("h", 2 * HEAD_BYTES)),
            write.summary(write.scalar("loss", 1.0)),
        )
    )
    log = write.read(tmp_path, data)
    assert values(log, "loss") == [1.0]
    assert log.graph_wall_ns == 1_700_000_001 * 10**9
    assert (log.records, log.notes) == (3, ())


def test_a_scalar_after_an_image_in_one_record_is_found(tmp_path: Path) -> None:
    picture = write.message(4, bytes(2 * HEAD_BYTES))
    image = write.message(1, b"image") + write.message(4, picture)
    log = write.read(tmp_path, write.record(image, write.simple("loss", 2.0)))
    assert values(log, "loss") == [2.0]


def test_a_model_longer_than_the_head_is_read_whole(tmp_path: Path) -> None:
    text = json.dumps({"class_name": "Functional", "config": {}, "filler": "x" * HEAD_BYTES})
    log = write.read(tmp_path, write.record(write.model(text), at_s=1_700_000_002))
    assert log.keras is not None
    assert (log.keras.model_class, log.keras.wall_ns) == ("Functional", 1_700_000_002 * 10**9)


def test_the_first_model_counts(tmp_path: Path) -> None:
    second = json.dumps({"class_name": "Functional", "config": {}})
    data = b"".join(write.record(write.model(text)) for text in (MODEL, second))
    keras = write.read(tmp_path, data).keras
    assert keras is not None
    assert keras.model_class == "Sequential"


def test_a_model_that_is_not_json_is_a_note(tmp_path: Path) -> None:
    log = write.read(tmp_path, write.record(write.model("{not json")))
    assert log.keras is None
    assert "not valid JSON" in log.notes[0].text


def test_the_coarse_time_of_the_file_version_does_not_count_as_the_first(tmp_path: Path) -> None:
    version = write.framed(write.file_version(at_s=1_700_000_000.0))
    record = write.record(write.scalar("loss", 1.0), at_s=1_700_000_000.75)
    log = write.read(tmp_path, version + record)
    assert (log.first_wall_ns, log.last_wall_ns) == (1_700_000_000_750_000_000,) * 2
    assert write.read(tmp_path, version).first_wall_ns == 1_700_000_000 * 10**9


def test_files_of_a_run_are_merged_in_time_order(tmp_path: Path) -> None:
    late, early = (
        write.record(write.scalar("loss", value), at_s=at_s)
        for value, at_s in ((2.0, 1_700_000_009), (1.0, 1_700_000_001))
    )
    assert values(write.read(tmp_path, late, early), "loss") == [1.0, 2.0]


def test_one_file_keeps_the_order_in_which_it_was_written(tmp_path: Path) -> None:
    data = b"".join(
        write.record(write.scalar("loss", value), at_s=at_s)
        for value, at_s in ((2.0, 1_700_000_009), (1.0, 1_700_000_001))
    )
    assert values(write.read(tmp_path, data), "loss") == [2.0, 1.0]


def test_validation_is_kept_apart(tmp_path: Path) -> None:
    record = write.record(write.scalar("epoch_loss", 1.0))
    log = write.read(tmp_path, record, role="validation")
    assert (list(log.train), list(log.validation)) == ([], ["epoch_loss"])


def test_a_damaged_value_is_skipped_and_the_rest_is_read(tmp_path: Path) -> None:
    records = [write.record(write.scalar("loss", value)) for value in (1.0, 2.0, 3.0)]
    broken = bytearray(records[1])
    broken[broken.index(b"\x22\x04") + 3] ^= 0xFF  # inside the value
    log = write.read(tmp_path, records[0] + bytes(broken) + records[2])
    assert values(log, "loss") == [1.0, 3.0]
    assert [note.level for note in log.notes] == ["warning"]


def test_a_damaged_length_ends_the_file(tmp_path: Path) -> None:
    records = [write.record(write.scalar("loss", value)) for value in (1.0, 2.0)]
    log = write.read(tmp_path, records[0] + b"\xff" + records[1][1:])
    assert values(log, "loss") == [1.0]
    assert f"byte {len(records[0])}" in log.notes[0].text


def test_a_file_that_is_gone_is_a_note(tmp_path: Path) -> None:
    gone = EventFile(str(tmp_path / "events.out.tfevents.1.box"), "train", 10)
    log = read_events(Run(".", str(tmp_path), (), (gone,)))
    assert "does not exist" in log.notes[0].text
    assert log.notes[0].level == "error"


def test_event_files_at_a_url() -> None:
    memory = fsspec.filesystem("memory")
    records = (
        write.graph(2 * HEAD_BYTES),
        write.summary(write.model(MODEL), at_s=1_700_000_002),
        write.summary(write.scalar("loss", 1.0)),
    )
    memory.pipe(f"/logs/{write.file_name()}", b"".join(map(write.framed, records)))
    try:
        log = read_events(discover(["memory://logs"]).runs[0])
    finally:
        memory.rm("/logs", recursive=True)
    assert (values(log, "loss"), log.records, log.notes) == ([1.0], 3, ())
    assert log.keras is not None


RECORDS = [
    write.framed(record)
    for record in (
        write.file_version(),
        write.summary(write.model(MODEL)),
        write.graph(HEAD_BYTES + 1),
        *(write.summary(write.scalar("loss", float(step)), step=step) for step in range(20)),
    )
]
WHOLE = b"".join(RECORDS)
RECORD_ENDS = list(np.cumsum([len(record) for record in RECORDS]))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(WHOLE)))
def test_a_cut_file_gives_all_records_before_the_cut(cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = write.read(Path(folder), WHOLE[:cut])
    whole_records = sum(1 for end in RECORD_ENDS if end <= cut)
    assert log.records == whole_records
    assert len(log.train.get("loss", ())) == max(0, whole_records - 3)
    assert bool(log.notes) == (cut not in {0, *RECORD_ENDS})


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_a_changed_byte_never_changes_a_scalar(position: int, flip: int) -> None:
    data = bytearray(WHOLE)
    data[position] ^= flip
    with tempfile.TemporaryDirectory() as folder:
        log = write.read(Path(folder), bytes(data))
    assert set(log.train) <= {"loss"}
    assert set(values(log, "loss") if log.train else []) <= set(map(float, range(20)))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_never_raise(data: bytes, in_a_sound_envelope: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = write.read(Path(folder), write.framed(data) if in_a_sound_envelope else data)
    assert log.records == int(in_a_sound_envelope)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=120), st.sampled_from([0, HEAD_BYTES]))
def test_random_summaries_never_raise(data: bytes, padding: int) -> None:
    record = write.framed(write.event(write.message(5, data, bytes(padding))))
    with tempfile.TemporaryDirectory() as folder:
        assert write.read(Path(folder), record).records == 1


# ---------------------------------------------------------------- real files


def test_every_public_event_file_is_read_without_a_note() -> None:
    corpus.case("L19")
    logs = [read_events(run) for run in discover([str(corpus.CORPUS)]).runs if run.event_files]
    assert len(logs) > 25
    assert all(log.records > 0 and not log.notes for log in logs)


def test_first_epoch_of_a_public_run_without_a_profile() -> None:
    (run,) = (run for run in discover([corpus.case("L19")]).runs if run.name.endswith("14_14_45"))
    log = read_events(run)
    assert log.keras is not None
    ends_ns = log.train["epoch_loss"].wall_ns
    later_s = np.diff(ends_ns)[:3] / 1e9
    assert (ends_ns[0] - log.keras.wall_ns) / 1e9 == pytest.approx(44, abs=2)
    assert later_s.min() > 19
    assert later_s.max() < 28


@pytest.mark.parametrize(
    ("case", "tags"),
    [
        ("L20", {"batch_loss", "batch_acc", "epoch_loss", "epoch_val_loss"}),
        ("L22", {"loss", "global_step/sec"}),
    ],
)
def test_old_tags_are_kept_as_written(case: str, tags: set[str]) -> None:
    assert tags <= set(read_events(discover([corpus.case(case)]).runs[0]).train)


# ---------------------------------------------------------------- histograms

SPREAD = ((0.0, 0.5, 3.0), (0.5, 1.0, 1.0))
ALL_ZERO = ((0.0, 0.0, 0.0), (0.0, 0.0, 4.0))  # TensorFlow 2.21: the last bucket holds them
EMPTY = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ((SPREAD, SPREAD, SPREAD), HistogramSums(3, zero_run=0, same_run=3)),
        ((ALL_ZERO, SPREAD), HistogramSums(2, zero_run=0, same_run=1)),
        ((SPREAD, ALL_ZERO, ALL_ZERO), HistogramSums(3, zero_run=2, same_run=2)),
        ((SPREAD, EMPTY), HistogramSums(1, zero_run=0, same_run=1)),
    ],
)
def test_histograms_are_summarized(
    tmp_path: Path, records: tuple[Any, ...], expected: HistogramSums
) -> None:
    data = b"".join(write.record(write.buckets("h", *rows)) for rows in records)
    assert write.read(tmp_path, data).histograms == {"h": expected}


def test_histograms_of_validation_are_left_alone(tmp_path: Path) -> None:
    data = write.record(write.buckets("h", *SPREAD))
    assert write.read(tmp_path, data, role="validation").histograms == {}


def test_a_histogram_of_another_format_costs_its_record_nothing(tmp_path: Path) -> None:
    both = write.summary(write.histogram("h", 32), write.scalar("loss", 0.5))
    log = write.read(tmp_path, write.framed(both))
    assert (log.histograms, values(log, "loss"), log.notes) == ({}, [0.5], ())
