"""The native reader of scalars reads the same from any event file as protobuf alone."""

from __future__ import annotations

import struct
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stall_analyzer.events.event_files import read_events
from stall_analyzer.events.event_scalars import MOST_LAYOUTS
from stall_analyzer.files.tfrecord import CHUNK_BYTES
from stall_analyzer.model.event_log import EventLog, HistogramSums
from stall_analyzer.model.runs import EventFile, Run
from tests import event_files as write

pytest.importorskip("stall_analyzer.events._scalars", reason="not built: no C compiler?")

ONE = write.tensor(write.FLOAT, write.content("<f", 0.25))
FIELDS = (  # the fields of a value, in the usual order and in any other
    write.message(1, b"loss"),
    write.message(1, b"\xff"),  # not valid text
    b"\x15" + bytes(4),
    b"\x15" + b"\0\0\xc0\x7f",  # NaN
    write.message(8, ONE),
    write.message(8, ONE, ONE),
    write.message(8, write.tensor(write.FLOAT, dims=(1,))),
    write.message(8, write.tensor(write.DOUBLE, write.content("<d", 0.5))),
    write.message(8, write.tensor(write.DOUBLE, write.message(4, bytes(24)), dims=(1, 3))),
    write.message(8, write.tensor(write.DOUBLE, write.message(4, bytes(16) + b"ABCDEFGH"))),
    write.message(8, write.number(1, write.FLOAT), write.content("<f", 2.0)),
    write.message(9, write.message(1, write.message(1, b"scalars"))),
    write.message(9, write.message(1, write.message(1, b"histograms"))),
    write.message(5, b""),  # a histogram of TensorFlow 1
    b"\x10\x05",  # a wrong type
)
values = st.lists(st.sampled_from(FIELDS), max_size=4).map(b"".join)
steps = st.sampled_from([0, 1, 127, 128, 2**31, 2**62, -1])
times = st.sampled_from([write.START_S, write.START_S + 0.5, 0.0, -1.0, float("nan"), 1e300])


def both(folder: Path, data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[EventLog, EventLog]:
    path = folder / write.file_name()
    path.write_bytes(data)
    run = Run(".", str(folder), (), (EventFile(str(path), "train", len(data)),))
    native = read_events(run)
    monkeypatch.setenv("STALL_PURE_PYTHON", "1")
    pure = read_events(run)
    monkeypatch.delenv("STALL_PURE_PYTHON")
    return native, pure


def assert_equal(one: EventLog, other: EventLog) -> None:
    assert one.train.keys() == other.train.keys()
    for tag, series in one.train.items():
        for column in ("step", "wall_ns", "value"):
            mine, theirs = getattr(series, column), getattr(other.train[tag], column)
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)
    assert replace(one, train={}, read_ns=None) == replace(other, train={}, read_ns=None)


@given(
    records=st.lists(st.tuples(st.lists(values, max_size=3), steps, times), min_size=1, max_size=6),
    order=st.lists(st.integers(0, 5), max_size=30),
)
@settings(deadline=None, max_examples=300)
def test_whatever_the_records_hold(
    records: list[tuple[list[bytes], int, float]], order: list[int]
) -> None:
    written = [
        write.record(*values, at_s=at_s, step=step) if step else
        write.framed(b"\x09" + struct.pack("<d", at_s)
                     + write.message(5, *(write.message(1, value) for value in values)))
        for values, step, at_s in records
    ]  # fmt: skip
    data = b"".join([*written, *(written[i % len(written)] for i in order)])
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        assert_equal(*both(Path(folder), data, patch))


@given(position=st.integers(0, 5000), flip=st.integers(1, 255), cut=st.integers(0, 5000))
@settings(deadline=None, max_examples=300)
def test_wherever_the_file_is_damaged(position: int, flip: int, cut: int) -> None:
    parts = [
        write.record(write.scalar("loss", step / 8), write.simple("rate", step), step=step)
        + write.record(write.scalar("accuracy", step / 4, None), step=step)
        for step in range(20)
    ]
    data = bytearray(b"".join(parts))
    data[position % len(data)] ^= flip
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        assert_equal(*both(Path(folder), bytes(data[: -1 - cut % len(data)]), patch))


def test_records_longer_than_a_chunk_among_scalars(tmp_path: Path) -> None:
    picture = write.message(1, b"picture") + write.message(4, bytes(CHUNK_BYTES))
    part = [write.record(write.scalar("loss", 0.5), step=step) for step in range(1, 4)]
    data = b"".join([*part, write.record(picture), *part, write.record(picture), *part])
    with pytest.MonkeyPatch.context() as patch:
        native, pure = both(tmp_path, data, patch)
    assert_equal(native, pure)
    assert len(native.train["loss"]) == 9
    assert not native.notes


def test_histograms_are_summarized_in_the_same_way(tmp_path: Path) -> None:
    zeros, ones = (0.0, 0.0, 4.0), (1.0, 1.0, 4.0)
    rows = [(zeros,), (ones,), (ones,), (ones, zeros), (zeros,), (zeros,), (zeros,)]
    records = [
        write.record(write.buckets(tag, *each), step=step, at_s=write.START_S + step)
        for step, each in enumerate(rows)
        for tag in ("kernel", "bias")
    ]
    with pytest.MonkeyPatch.context() as patch:
        native, pure = both(tmp_path, b"".join(records) + records[0], patch)
    assert_equal(native, pure)
    assert native.histograms["bias"] == HistogramSums(records=7, zero_run=3, same_run=3)


def test_histograms_of_several_chunks_are_summarized_in_the_same_way(tmp_path: Path) -> None:
    moves = [[(0.0, 1.0, float(n))] * (20 + n % 2) for n in range(1, 2000)]
    rests = [[(0.0, 0.0, 4.0)] * 20] * 2000
    records = [write.record(write.buckets("kernel", *rows)) for rows in (*moves, *rests)]
    assert sum(map(len, records)) > 2 * CHUNK_BYTES
    with pytest.MonkeyPatch.context() as patch:
        native, pure = both(tmp_path, b"".join(records), patch)
    assert_equal(native, pure)
    assert native.histograms["kernel"] == HistogramSums(3999, zero_run=2000, same_run=2000)


def test_scalars_may_be_doubles(tmp_path: Path) -> None:
    """A histogram contains doubles, too."""
    one = write.tensor_value("loss", write.tensor(write.DOUBLE, write.content("<d", 0.5)))
    records = [write.record(one, step=step) for step in range(1, 4)]
    with pytest.MonkeyPatch.context() as patch:
        native, pure = both(tmp_path, b"".join(records), patch)
    assert_equal(native, pure)
    assert native.train["loss"].step.tolist() == [1, 2, 3]
    assert not native.notes


def test_values_of_one_record_keep_their_tags(tmp_path: Path) -> None:
    records = [
        write.record(write.simple("cpu", step), write.scalar("loss", step / 2), step=step)
        for step in range(1, 5)
    ]
    log = write.read(tmp_path, b"".join(records))
    assert log.train["cpu"].value.tolist() == [1, 2, 3, 4]
    assert log.train["loss"].value.tolist() == [0.5, 1, 1.5, 2]


def test_endless_layouts_are_still_read(tmp_path: Path) -> None:
    tags = [f"t{number}" for number in range(MOST_LAYOUTS + 10)] * 2
    log = write.read(tmp_path, b"".join(write.record(write.simple(tag, 1.0)) for tag in tags))
    assert {len(series) for series in log.train.values()} == {2}
