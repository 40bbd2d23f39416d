"""Captured runs in progress are followed, and an end that no file shows is noticed."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from stall_analyzer.live.followed_run import FollowedRun
from stall_analyzer.model.runs import Run
from stall_analyzer.signals.ending.process_end import SILENT_NS
from tb_stall_plugin import analyses as analyses_module
from tb_stall_plugin.analyses import Analyses
from tb_stall_plugin.live_runs import LiveRuns
from tests import captures
from tests.captures import NS, START_NS
from tests.live_logs import USUAL, LiveLog, books, epoch, fit, worker
from tests.plugin.boards import SAMPLES, Board
from tests.plugin.workers import Counting, only_run, settled


class Clock(SimpleNamespace):
    """Time, as in the logs."""

    at_s = 0.0

    def time(self) -> float:
        return START_NS / NS + self.at_s

    def time_ns(self) -> int:
        return START_NS + round(self.at_s * NS)

    def monotonic(self) -> float:
        return self.at_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock(at_s=10.0)
    monkeypatch.setattr("tb_stall_plugin.live_runs.time", made)
    return made


@pytest.fixture
def log(tmp_path: Path) -> LiveLog:
    made = LiveLog(tmp_path)
    made.append(captures.start(), fit(200), epoch(0.0), books(0.0, [USUAL] * 10))
    return made


def found(log: LiveLog) -> dict[str, Run]:
    return {"it": only_run(log.folder)}


def test_a_run_says_how_far_it_is(log: LiveLog, clock: Clock) -> None:
    (process,) = LiveRuns().look(found(log)).going_on["it"]["processes"]
    assert process["text"].startswith("epoch 1, step 10 of 200, 70% waiting for input")
    assert process["now"] == ""
    assert process["buckets_ps"]["input"] == 7 * 10**12


def test_it_follows_what_is_written(log: LiveLog, clock: Clock) -> None:
    live = LiveRuns()
    live.look(found(log))
    log.append(books(10.0, [USUAL] * 5))
    clock.at_s = 15.0
    (process,) = live.look(found(log)).going_on["it"]["processes"]
    assert process["text"].startswith("epoch 1, step 15 of 200")


def test_several_requests_within_a_second_share_one_look(log: LiveLog, clock: Clock) -> None:
    live = LiveRuns()
    first = live.look(found(log))
    clock.at_s += 0.5
    assert live.look(found(log)).going_on is first.going_on


def test_a_late_worker_is_told_apart_from_the_others(tmp_path: Path, clock: Clock) -> None:
    log = LiveLog(tmp_path)
    worker(log, 0, [{"collective": 0.9, "step": 0.1}] * 10)
    worker(log, 1, [{"wait": 0.9, "step": 0.1}] * 10)
    processes = LiveRuns().look(found(log)).going_on["it"]["processes"]
    assert [process["late"] for process in processes] == [False, True]


def test_a_process_that_falls_silent_has_ended_although_no_file_says_so(
    log: LiveLog, clock: Clock
) -> None:
    live = LiveRuns()
    assert "it" in live.look(found(log)).going_on
    clock.at_s += SILENT_NS / NS + 1
    looked = live.look(found(log))
    assert looked.going_on == {}
    assert looked.ended == {"it"}
    clock.at_s += 2
    assert live.look(found(log)).ended == frozenset()


def test_old_runs_and_those_without_a_capture_are_not_followed(log: LiveLog) -> None:
    """They cost nothing, however many there are."""
    live = LiveRuns()
    old = {"it": replace(only_run(log.folder), changed_unix_s=1.0)}
    ordinary = only_run(SAMPLES / "numerics_nan")
    old["ordinary"] = replace(ordinary, changed_unix_s=time.time())
    assert live.look(old).going_on == {}


def test_a_run_that_cannot_be_followed_hides_no_other(
    log: LiveLog, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed = FollowedRun.read_new

    def read_new(self: FollowedRun) -> None:
        assert self.run.attempt != 9
        followed(self)

    monkeypatch.setattr(FollowedRun, "read_new", read_new)
    (run,) = found(log).values()
    live = LiveRuns()
    assert live.look({"bad": replace(run, attempt=9), "it": run}).going_on.keys() == {"it"}


def test_the_list_of_runs_contains_it(log: LiveLog, clock: Clock) -> None:
    (run,) = Board(str(log.folder)).runs().values()
    assert run["live"]["processes"][0]["text"].startswith("epoch 1, step 10 of 200")


# ---------------------------------------------------------------- read again, with a rest


def test_a_run_in_progress_is_read_again_after_a_rest(
    log: LiveLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyses_module, "REST", 1e6)
    counting = Counting()
    analyses = Analyses(lambda: counting)
    for at_s in (10.0, 11.0, 12.0):  # the first change is shown at once, the second waits
        settled(analyses, only_run(log.folder))
        log.append(books(at_s, [USUAL]))
    assert settled(analyses, only_run(log.folder)).analysis is not None
    assert len(counting.runs) == 2


def test_a_run_that_has_ended_is_judged_once_more(log: LiveLog) -> None:
    counting = Counting()
    analyses = Analyses(lambda: counting)
    run = only_run(log.folder)
    settled(analyses, run)
    analyses.outlived(run)
    settled(analyses, run)
    assert len(counting.runs) == 2


def test_a_changed_verdict_comes_with_its_reason(
    log: LiveLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is running until its process says that it has ended."""
    monkeypatch.setattr(analyses_module, "REST", 0.0)
    analyses = Analyses(Counting)
    before = settled(analyses, only_run(log.folder))
    assert before.changes == ()
    log.append(captures.mark("epoch_end", 11.0, 0, 10), captures.record("end", 12.0))
    after = settled(analyses, only_run(log.folder))
    assert before.analysis is not None and after.analysis is not None
    (change,) = after.changes
    assert change["sentence"] == before.analysis.head.facts["sentence"]
    assert change["why"]
