"""Several hosts and unfinished runs: each detector fires on its case and not next to it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stall_analyzer.align import align
from stall_analyzer.decode import read_trace
from stall_analyzer.detectors import (
    collective_wait,
    replicas_without_work,
    straggler,
    stuck_or_dead,
)
from stall_analyzer.model import PS_PER_MS, EventLog, HostFile, Series, Session, Trace
from stall_analyzer.signals import Signals
from tests.detectors.training import found, signals_for, training
from tests.traces import TRAIN_OPS, call, device, event, host, ops
from tests.xspace import Event, space

STEPS = 20
NS_PER_S = 1_000_000_000


def worker(folder: Path, name: str, pause_ms: float, waits_ms: float) -> Trace:
    """Steps that compute for 10 ms, after a pause, and then meet the other worker."""
    python: list[Event] = []
    work: list[Event] = []
    meetings: list[Event] = []
    length = pause_ms + 10 + waits_ms
    for number in range(STEPS):
        start = number * length + pause_ms
        end = start + 10 + waits_ms
        run = number + 1
        python += call(start, end, run=run)
        work += ops(start, start + 10, run, *TRAIN_OPS)
        keys = {"step_id": run, "group_key": 1, "instance_key": 100 + number}
        meetings.append(event("CollectiveReduceV2:CollectiveReduceV2", start + 10, end, **keys))
    path = folder / f"{name}.xplane.pb"
    lines = host(("python", python), ("tf_Compute", work), ("collective_ops", meetings))
    path.write_bytes(space(lines))
    return read_trace(HostFile(name, str(path), "xplane", path.stat().st_size))


def cluster(folder: Path, *traces: Trace) -> Signals:
    session = Session("session", str(folder), ())
    return signals_for(align([(session, trace) for trace in traces], None))


def test_the_worker_that_comes_last_is_found_with_its_reason(tmp_path: Path) -> None:
    waiting = worker(tmp_path, "punctual", pause_ms=0, waits_ms=31)
    late = worker(tmp_path, "late", pause_ms=30, waits_ms=1)
    signals = cluster(tmp_path, waiting, late)
    finding = found(straggler.check(signals), "act")
    assert finding.title.startswith("late is late: the others wait 570 ms")
    assert "more on host than the others" in finding.explanation
    assert signals.collectives.waited_ps == {"punctual": 570 * PS_PER_MS, "late": 0}
    assert collective_wait.check(signals) is None, "the reason is known: the other finding says it"


def test_workers_that_are_even_are_left_alone(tmp_path: Path) -> None:
    one = worker(tmp_path, "one", pause_ms=0, waits_ms=3)
    other = worker(tmp_path, "other", pause_ms=1, waits_ms=2)
    assert straggler.check(cluster(tmp_path, one, other)) is None


def test_one_host_alone_can_only_say_that_it_waits(tmp_path: Path) -> None:
    alone = cluster(tmp_path, worker(tmp_path, "alone", pause_ms=0, waits_ms=31))
    finding = found(collective_wait.check(alone), "act")
    assert finding.title == "This host waits 31.0 ms a step for the others"
    assert "always late, or the network" in finding.explanation
    assert finding.gain.low_ps == 0
    assert straggler.check(alone) is None


def test_collectives_of_a_few_milliseconds_are_a_note(tmp_path: Path) -> None:
    alone = cluster(tmp_path, worker(tmp_path, "alone", pause_ms=0, waits_ms=3))
    assert found(collective_wait.check(alone), "note")
    assert collective_wait.check(training(tmp_path)) is None


def test_devices_without_work_beside_devices_with_work(tmp_path: Path) -> None:
    busy = device("/device:GPU:0", ("Stream #1(Compute)", [event("MatMul", 0, 200)]))
    one_of_two = training(tmp_path, planes=[busy, device("/device:GPU:1")])
    assert found(replicas_without_work.check(one_of_two), "note").title == (
        "1 of 2 devices had no work"
    )
    assert replicas_without_work.check(training(tmp_path, planes=[busy])) is None
    none_of_one = training(tmp_path, planes=[device("/device:GPU:0")])
    assert replicas_without_work.check(none_of_one) is None


# ---------------------------------------------------------------- unfinished runs


def logged(batches_s: Sequence[float], last_s: float, finished: bool = False) -> Signals:
    walls = np.array([round(s * NS_PER_S) for s in batches_s], dtype=np.int64)
    losses = Series(np.arange(len(walls), dtype=np.int64), walls, np.ones(len(walls)))
    train = {"batch_loss": losses}
    if finished:
        end = np.array([round(last_s * NS_PER_S)], dtype=np.int64)
        train["epoch_loss"] = Series(np.zeros(1, dtype=np.int64), end, np.ones(1))
    log = EventLog(train, {}, None, NS_PER_S, round(last_s * NS_PER_S), None, len(walls))
    return signals_for(align([], log))


def test_a_run_that_finished_no_epoch_is_slow_stuck_or_dead() -> None:
    batches = [2 + n / 10 for n in range(40)]
    finding = found(stuck_or_dead.check(logged(batches, last_s=6)), "note")
    assert "slow, stuck or dead" in finding.title
    assert "40 batches were logged" in finding.explanation
    assert "one every 100 ms" in finding.explanation
    assert stuck_or_dead.check(logged(batches, last_s=7, finished=True)) is None


def test_a_run_that_went_silent_is_worth_a_look() -> None:
    batches = [2 + n / 10 for n in range(40)]
    finding = found(stuck_or_dead.check(logged(batches, last_s=600)), "consider")
    assert "it stood still" in finding.explanation
