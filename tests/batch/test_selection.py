"""Which runs are wanted, and how to say so."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import pytest

from stall_analyzer.batch.selection import (
    Selection,
    parse_duration,
    parse_shard,
    parse_share,
    parse_since,
)
from tests.batch.fleets import analyzed, fake_run, lay_out, names_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("90s", 90), ("30m", 1800), ("30min", 1800), ("1.5h", 5400), ("3d", 259_200)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


def test_since_is_a_local_date_or_so_long_ago() -> None:
    assert parse_since("2026-11-01") == datetime(2026, 11, 1).timestamp()
    assert parse_since("2026-11-01T12:30") == datetime(2026, 11, 1, 12, 30).timestamp()
    assert parse_since("2d") == pytest.approx(time.time() - 2 * 86_400, abs=60)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_duration, "3 weeks"), (parse_duration, "-1s"), (parse_since, "yesterday"),
        (parse_share, "0.2"), (parse_shard, "4/4"), (parse_shard, "1/0"), (parse_shard, "x"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(parse: object, text: str) -> None:
    assert callable(parse)
    with pytest.raises(ValueError, match=text.replace("/", "/")):
        parse(text)


def test_since_looks_at_the_newest_file_and_keeps_what_it_cannot_judge() -> None:
    wanted = Selection(since_unix_s=100.0)
    assert wanted.is_new(fake_run("new", 100.0))
    assert not wanted.is_new(fake_run("old", 99.0))
    assert wanted.is_new(fake_run("no clock", None))


def test_shards_divide_all_runs_and_no_run_twice() -> None:
    runs = [fake_run(f"exp-{number}") for number in range(1000)]
    shards = [[run for run in runs if Selection(shard=(i, 4)).is_of_shard(run)] for i in range(4)]
    assert sorted(run.name for shard in shards for run in shard) == sorted(r.name for r in runs)
    assert all(200 < len(shard) < 300 for shard in shards)


def test_machines_that_share_a_store_share_the_work(tmp_path: Path) -> None:
    names = [f"run-{number}" for number in range(8)]
    root = lay_out(tmp_path / "logs", names)
    read = 0
    for index in range(3):
        shard, _ = analyzed(root, tmp_path / "store", Selection(shard=(index, 3)))
        read += shard.to_read
    assert read == len(names)
    whole, _ = analyzed(root, tmp_path / "store")
    assert whole.to_read == 0
    assert names_of(whole.entries()) == names
