"""Sessions of one capture whose names differ by seconds, and captures that are really two."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stall_analyzer.align.align import align
from stall_analyzer.decode.decode import read_trace
from stall_analyzer.model.runs import HostFile, ProfileSession
from tests.clusters import PUNCTUAL, steadily, write_job

EVEN = {name: steadily(PUNCTUAL) for name in ("w0", "w1")}
JOINED = "are one capture"


def notes(folder: Path, sessions: Mapping[str, list[HostFile]]) -> str:
    placed = [
        (ProfileSession(name, str(folder), ()), read_trace(file))
        for name, files in sessions.items()
        for file in files
    ]
    return " ".join(note.text for note in align(placed, None).notes)


def test_hosts_that_exported_a_second_apart_are_one_capture(tmp_path: Path) -> None:
    one, other = write_job(tmp_path, EVEN)
    text = notes(tmp_path, {"2026_01_01_10_00_01": [one], "2026_01_01_10_00_02": [other]})
    assert f"2026_01_01_10_00_01 and 2026_01_01_10_00_02 {JOINED}" in text


def test_clocks_that_are_seconds_apart_do_not_hide_it(tmp_path: Path) -> None:
    one, other = write_job(tmp_path, EVEN, ahead_s={"w1": 8})
    text = notes(tmp_path, {"2026_01_01_10_00_01": [one], "2026_01_01_10_00_09": [other]})
    assert JOINED in text


def test_two_captures_of_the_same_host_stay_two(tmp_path: Path) -> None:
    one, _ = write_job(tmp_path, EVEN)
    text = notes(tmp_path, {"2026_01_01_10_00_01": [one], "2026_01_01_10_00_02": [one]})
    assert JOINED not in text


def test_captures_of_different_times_stay_two(tmp_path: Path) -> None:
    (tmp_path / "later").mkdir()
    one, _ = write_job(tmp_path, EVEN)
    _, other = write_job(tmp_path / "later", EVEN, ahead_s={"w0": 20, "w1": 20}, first_key=500)
    text = notes(tmp_path, {"2026_01_01_10_00_01": [one], "2026_01_01_10_00_20": [other]})
    assert JOINED not in text


def test_names_that_are_minutes_apart_are_two_captures(tmp_path: Path) -> None:
    one, other = write_job(tmp_path, EVEN)
    text = notes(tmp_path, {"2026_01_01_10_00_01": [one], "2026_01_01_10_05_00": [other]})
    assert JOINED not in text
