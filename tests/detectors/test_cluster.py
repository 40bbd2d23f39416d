"""Several hosts and unfinished runs: each detector fires on its case, not on a near miss."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stall_analyzer.align.align import align
from stall_analyzer.detectors.cluster import collective_wait, replicas_without_work, straggler
from stall_analyzer.detectors.ending import stuck_or_dead
from stall_analyzer.diagnose.verdict import judge
from stall_analyzer.model.event_log import EventLog, KerasConfig, Series
from stall_analyzer.signals.signals import Signals
from tests import clusters
from tests.clusters import PUNCTUAL, Job, Way, steadily, timeline_of, traces_of, write_job
from tests.detectors.training import found, signals_for, training
from tests.traces import device, event

STEPS = 20
NS_PER_S = 1_000_000_000
cluster = clusters.signals_for


def job(**pauses_ms: float) -> Job:
    """Hosts that pause before each step except the first."""
    return {
        name: [PUNCTUAL, *steadily(Way(pause_ms=pause_ms), STEPS - 1)]
        for name, pause_ms in pauses_ms.items()
    }


def test_the_worker_that_comes_last_is_found_with_its_reason(tmp_path: Path) -> None:
    signals = cluster(tmp_path, job(punctual=0, late=30))
    finding = found(straggler.check(signals), "act")
    assert finding.title.startswith("late is late: the others wait 570 ms")
    assert "spent 570 ms more on host (python) than the others did" in finding.explanation
    assert "was last at 19 of 20 synchronization points and held up 19 steps" in finding.explanation
    assert {piece.host for piece in finding.evidence} == {"late"}
    assert signals.host.host == "late", "its findings are the run's findings"
    assert collective_wait.check(signals) is None, "the reason is known: the other finding says it"


def test_the_verdict_is_what_holds_up_the_straggler(tmp_path: Path) -> None:
    input_late = {"a": steadily(PUNCTUAL), "b": [PUNCTUAL, *steadily(Way(input_ms=40), STEPS - 1)]}
    signals = cluster(tmp_path, input_late)
    verdict = judge(signals, ())
    assert (verdict.status, verdict.primary, verdict.host) == ("slow_always", "input", "b")
    assert "b made the others wait 760 ms" in verdict.sentence
    assert "because of its input time (wait" in verdict.sentence


def test_a_straggler_of_one_step_is_slow_once(tmp_path: Path) -> None:
    ways = [*steadily(PUNCTUAL, 10), Way(traced_ms=900), *steadily(PUNCTUAL, 9)]
    signals = cluster(tmp_path, {"a": steadily(PUNCTUAL), "b": ways})
    finding = found(straggler.check(signals), "consider")  # less than five seconds, and once
    assert finding.title == "b was late once: the others waited 900 ms for it"
    assert finding.later_gain.high_ps == 0
    verdict = judge(signals, (finding,))
    assert (verdict.status, verdict.primary) == ("slow_once", "compile")


def test_stragglers_in_turn_are_all_named(tmp_path: Path) -> None:
    one = [Way(input_ms=40) if n % 2 else PUNCTUAL for n in range(STEPS)]
    other = [PUNCTUAL if n % 2 else Way(pause_ms=30) for n in range(STEPS)]
    signals = cluster(tmp_path, {"a": steadily(PUNCTUAL), "b": one, "c": other})
    finding = found(straggler.check(signals), "act")
    assert finding.title.startswith("b and c take turns being late")
    assert "on input (wait)" in finding.explanation and "on host (python)" in finding.explanation
    assert "in turn (b 400 ms, input; c" in judge(signals, ()).sentence


def test_a_host_that_computes_longer_is_a_straggler_too(tmp_path: Path) -> None:
    slow = {"a": steadily(PUNCTUAL), "b": steadily(Way(compute_ms=40))}
    signals = cluster(tmp_path, slow)
    assert "computes for longer" in found(straggler.check(signals), "act").change.text
    assert judge(signals, ()).primary == "communication", "there is no such thing to act on"


def test_workers_that_are_even_are_left_alone(tmp_path: Path) -> None:
    signals = cluster(tmp_path, job(one=0, other=1))
    assert straggler.check(signals) is None
    assert judge(signals, ()).host == ""


def alone(folder: Path, others_ms: float) -> Signals:
    """One of two hosts; the other was not recorded."""
    (mine, _) = write_job(folder, job(alone=0, unseen=others_ms), clocks=False)
    timeline = timeline_of(folder, traces_of([mine]))
    return signals_for(timeline)


def test_one_host_alone_can_only_say_that_it_waits(tmp_path: Path) -> None:
    signals = alone(tmp_path, 30)
    finding = found(collective_wait.check(signals), "act")
    assert finding.title == "This host waits 31.0 ms a step for the others"
    assert "one worker is always late" in finding.explanation
    assert finding.gain.low_ps == 0
    assert straggler.check(signals) is None


def test_time_in_collectives_that_no_host_explains_is_the_networks(tmp_path: Path) -> None:
    slow = {name: steadily(PUNCTUAL) for name in ("a", "b")}
    signals = cluster(tmp_path, slow, transfer_ms=20)
    finding = found(collective_wait.check(signals), "consider")
    assert "was late, so the reason is the network." in finding.explanation
    assert straggler.check(signals) is None


def test_collectives_of_a_few_milliseconds_are_a_note(tmp_path: Path) -> None:
    assert found(collective_wait.check(alone(tmp_path, 2)), "note")
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


def logged(
    batches_s: Sequence[float], last_s: float, finished: bool = False, keras: bool = True
) -> Signals:
    walls = np.array([round(s * NS_PER_S) for s in batches_s], dtype=np.int64)
    losses = Series(np.arange(len(walls), dtype=np.int64), walls, np.ones(len(walls)))
    train = {"batch_loss": losses}
    if finished:
        end = np.array([round(last_s * NS_PER_S)], dtype=np.int64)
        train["epoch_loss"] = Series(np.zeros(1, dtype=np.int64), end, np.ones(1))
    model = KerasConfig(NS_PER_S, "Sequential", ()) if keras else None
    log = EventLog(train, {}, model, NS_PER_S, round(last_s * NS_PER_S), None, len(walls))
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
    assert "training had stopped" in finding.explanation


def test_a_loop_of_ones_own_that_logs_no_epochs_simply_ends() -> None:
    batches = [2 + n / 10 for n in range(40)]
    of_loop = logged(batches, last_s=6, keras=False)
    assert stuck_or_dead.check(of_loop) is None
    assert of_loop.timeline.notes == ()
