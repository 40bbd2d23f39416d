"""Hosts whose clocks disagree are put on one clock by what they share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer.align.align import align
from stall_analyzer.align.host_clocks import clock_notes
from stall_analyzer.model.runs import ProfileSession
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.units import PS_PER_MS, PS_PER_S
from tests.clusters import PUNCTUAL, UNIX_NS, Job, Way, steadily, timeline_of, traces_of, write_job
from tests.traces import call, clock, event, host, ops, trace_of

THREE: Job = {"w0": steadily(PUNCTUAL), "w1": steadily(Way(pause_ms=5)), "w2": steadily(PUNCTUAL)}


def placed(timeline: Timeline) -> dict[str, int]:
    return {aligned.host: aligned.shift_ps for aligned in timeline.traces}


@pytest.mark.parametrize("ahead_s", [{}, {"w1": 3.2}, {"w1": -7.5, "w2": 0.8}])
def test_collectives_set_the_clocks_however_far_apart(
    tmp_path: Path, ahead_s: dict[str, float]
) -> None:
    timeline = timeline_of(tmp_path, traces_of(write_job(tmp_path, THREE, ahead_s)))
    shifts = placed(timeline)
    assert shifts["w0"] == shifts["w1"] == shifts["w2"]
    clocks = {aligned.host: aligned.clock for aligned in timeline.traces}
    for name in ("w1", "w2"):
        assert clocks[name].source == "collectives"
        assert clocks[name].shared == 20
        assert clocks[name].ahead_ps == round(ahead_s.get(name, 0) * PS_PER_S)
        assert clocks[name].error_ps == 0


def test_traces_without_any_clock_are_set_by_collectives_too(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, traces_of(write_job(tmp_path, THREE, clocks=False)))
    shifts = placed(timeline)
    assert shifts["w0"] == shifts["w1"] == shifts["w2"]
    assert timeline.window.start_unix_ns is None
    assert timeline.traces[1].clock.ahead_ps is None


def test_the_note_says_how_well_they_agree_and_how_far_apart_they_were(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, traces_of(write_job(tmp_path, THREE, {"w1": 3.2})))
    (note,) = [note for note in timeline.notes if "clocks" in note.text]
    assert "at least 20 common collectives" in note.text
    assert "up to 3.20 s apart" in note.text
    together = timeline_of(tmp_path, traces_of(write_job(tmp_path, THREE)))
    assert not any("apart" in note.text for note in together.notes)


def marked(
    folder: Path,
    name: str,
    begin_ms: float,
    *,
    jitter_ms: float = 0.0,
    every_ms: float = 20.0,
    ahead_s: float = 0.0,
    meets: bool = True,
) -> Trace:
    """Ten steps with markers, and collectives with keys that no other host has."""
    marks, calls, work, met = [], [], [], []
    for n in range(10):
        at = begin_ms + n * every_ms + jitter_ms * (n % 2)
        marks.append(event("train", at, at + 15, step_num=n, _r=1))
        calls += call(at + 1, at + 14, run=n + 1)
        work += ops(at + 1, at + 14, n + 1, "dense/MatMul:MatMul", "gradient_tape/x:Mul")
        keys = {"step_id": n + 1, "group_key": ord(name), "instance_key": n}
        met.append(event("CollectiveReduceV2", at + 13, at + 14, **keys))
    threads = [("python", marks + calls), ("tf_Compute", work), ("collective_ops", met)]
    folder = folder / name
    folder.mkdir()
    planes = host(*threads[: 3 if meets else 2]), clock(UNIX_NS + round(ahead_s * 1e9), 1)
    return replace(trace_of(folder, *planes), host=name)


def test_numbered_steps_are_used_if_no_collective_is_shared(tmp_path: Path) -> None:
    one, other = marked(tmp_path, "a", 10), marked(tmp_path, "b", 40, jitter_ms=2, ahead_s=2)
    timeline = timeline_of(tmp_path, [one, other])
    mine, theirs = timeline.traces
    assert theirs.clock.source == "steps" and theirs.clock.shared == 10
    assert theirs.shift_ps - mine.shift_ps == -31 * PS_PER_MS
    assert theirs.clock.error_ps == PS_PER_MS
    assert "10 common steps" in clock_notes([theirs.clock])[0].text


@pytest.mark.parametrize("apart", [{"every_ms": 60.0}, {"meets": False}])
def test_hosts_that_train_apart_keep_their_own_clocks(tmp_path: Path, apart: Any) -> None:
    """Their steps differ in pace, or nothing shows that they ever wait for each other."""
    timeline = timeline_of(
        tmp_path, [marked(tmp_path, "a", 10), marked(tmp_path, "b", 10, ahead_s=0.1, **apart)]
    )
    mine, theirs = timeline.traces
    assert theirs.clock.source == "own clock"
    assert theirs.shift_ps - mine.shift_ps == 100 * PS_PER_MS


def test_the_clock_of_the_event_files_is_the_common_one(tmp_path: Path) -> None:
    session = ProfileSession("s", str(tmp_path), ())
    traces = traces_of(write_job(tmp_path, THREE, {"w1": 3.0}))
    timeline = align([(session, t) for t in traces], None, logging_host="w1")
    ahead = {aligned.host: aligned.clock.ahead_ps for aligned in timeline.traces}
    assert ahead == {"w0": -3 * PS_PER_S, "w1": 0, "w2": -3 * PS_PER_S}
    assert timeline.window.start_unix_ns == UNIX_NS + 3 * 10**9
