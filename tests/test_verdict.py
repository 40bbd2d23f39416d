"""The verdict's sentence: whether to wait or to act."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stall_analyzer.diagnose.verdict import judge
from stall_analyzer.model.findings import Gain
from stall_analyzer.signals.signals import Signals
from tests.detectors.training import signals_for
from tests.real_documents import sample
from tests.test_plan import MS, finding, signals
from tests.traces import TRAIN_OPS, call, host, ops, timeline_of, wait
from tests.xspace import Event

TRACED_MS = 1000.0


def verdict_of(folder: Path, wait_ms: float) -> tuple[str, str, str]:
    """A second of tracing, then twenty steps that wait for input and compute for 10 ms."""
    python: list[Event] = []
    work: list[Event] = []
    fetched: list[Event] = []
    now = 0.0
    for run in range(1, 21):
        traced = TRACED_MS if run == 1 else 0.0
        asked, end = now + traced, now + traced + wait_ms + 10
        python += call(now, end, run, traced_ms=traced)
        fetched += wait(asked, asked + wait_ms, run)
        work += ops(asked + wait_ms, end, run, *TRAIN_OPS)
        now = end
    lines = ("python", python), ("tf_Compute", work), ("tf_data_iterator_get_next", fetched)
    verdict = judge(signals_for(timeline_of(folder, host(*lines))), ())
    return verdict.status, verdict.primary, verdict.sentence


def test_what_comes_once_can_be_waited_for(tmp_path: Path) -> None:
    status, primary, sentence = verdict_of(tmp_path, wait_ms=1)
    assert (status, primary) == ("slow_once", "compile")
    assert sentence.startswith("Slow once, not again: 1.00 s of ")


@pytest.mark.parametrize("wait_ms", [15, 40])
def test_but_not_what_comes_again_beside_it(tmp_path: Path, wait_ms: float) -> None:
    status, primary, sentence = verdict_of(tmp_path, wait_ms)
    assert (status, primary) == ("slow_once", "compile")
    assert sentence.startswith("Slow once: ")
    assert sentence.endswith(f"But input takes {20 * wait_ms:.0f} ms in every epoch.")


def first_cause_once(**causes_ms: int) -> Signals:
    run = signals(**causes_ms)
    one_time = np.arange(len(causes_ms)) == 0
    host = replace(run.host, ledger=replace(run.host.ledger, one_time=one_time))
    return Signals(run.timeline, (host,), host)


def test_what_comes_again_is_named_where_a_finding_explains_it() -> None:
    run = first_cause_once(compile__tracing=6000, input__wait=3000, compute__step=1000)
    slow_input = finding("ST002", "input", 1000, 2000, severity="consider")
    assert judge(run, (slow_input,)).sentence.endswith(
        "But input takes 3.00 s in every epoch: a title."
    )


def test_retracing_may_come_back_with_the_next_shape() -> None:
    verdict = judge(first_cause_once(compile__retracing=6000, compute__step=2000), ())
    assert verdict.status == "slow_once"
    assert verdict.sentence.startswith("Slow once: ")


COMPUTES = {"compute__step": 7000, "host__python": 2500, "compile__tracing": 500}


def test_what_costs_more_than_any_bucket_to_act_on_is_what_the_verdict_names() -> None:
    updates = finding("ST206", "compute", 3000, 5000, later_ms=(3000, 5000), severity="consider")
    verdict = judge(signals(**COMPUTES), (updates,))
    assert (verdict.status, verdict.primary) == ("slow_always", "compute")
    assert verdict.sentence == "Slow in every epoch: a title."


def test_a_bucket_that_costs_more_than_the_finding_stays_the_primary_one() -> None:
    small = finding("ST206", "compute", 2000, 2400, later_ms=(2000, 2400), severity="consider")
    assert judge(signals(**COMPUTES), (small,)).primary == "host"


def test_a_change_that_may_save_nothing_or_little_leaves_a_computing_run_healthy() -> None:
    run = signals(compute__step=9000, host__python=1000)
    run = replace(run, timeline=replace(run.timeline, window=replace(run.timeline.window, epoch=0)))
    unsure = finding("ST407", "compute", 0, 8000, severity="consider")
    little = finding("ST206", "compute", 500, 1500, severity="consider")
    assert judge(run, (unsure, little)).status == "healthy"


def test_time_of_a_bucket_inside_the_finding_goes_with_it() -> None:
    """One and a half of five seconds of Python are in a validation of four."""
    run = signals(compute__step=2000, host__python=5000, compute__runtime=3000)
    validation = finding(
        "ST404", "compute", 2500, 4000, blames_ms=(5500, 9500), later_ms=(2500, 4000),
        blames=("host", "compute"),
    )  # fmt: skip
    assert judge(run, (validation,)).primary == "compute"
    elsewhere = replace(validation, blames=("compute",))
    assert judge(run, (elsewhere,)).primary == "host"


def test_a_validation_that_mostly_waits_for_its_input_is_slow_input() -> None:
    run = signals(compute__step=2000, input__wait=3500, compute__runtime=500)
    validation = finding(
        "ST404", "compute", 2500, 4000, blames_ms=(2000, 6000), later_ms=(2500, 4000),
        blames=("input", "compute"),
    )  # fmt: skip
    assert judge(run, (validation,)).primary == "input"


def test_a_reader_who_waits_for_what_comes_once_is_told_about_a_validation_that_comes_again() -> (
    None
):
    run = first_cause_once(compile__tracing=6000, compute__step=4000)
    validation = finding("ST404", "compute", 2500, 3500, later_ms=(2500, 3500))
    sentence = judge(run, (validation,)).sentence
    assert sentence.endswith("But a title, in every epoch.")


def test_what_the_instruments_cost_is_never_what_holds_a_run_up() -> None:
    run = signals(
        profiler__logging=4000, profiler__stop=3000, host__python=1500, compute__step=1500
    )
    verdict = judge(run, ())
    assert verdict.primary == "host"
    assert "1.50 s of" in verdict.sentence


def test_what_comes_once_and_is_less_than_the_computing_leaves_a_run_healthy() -> None:
    run = first_cause_once(compile__tracing=3500, compute__step=5500, host__python=1000)
    run = replace(run, timeline=replace(run.timeline, window=replace(run.timeline.window, epoch=0)))
    verdict = judge(run, ())
    assert (verdict.status, verdict.primary) == ("healthy", "compute")
    assert verdict.sentence.endswith("Compile took 3.50 s, once.")


def test_unless_a_change_surely_helps() -> None:
    run = first_cause_once(compile__retracing=3500, compute__step=5500, host__python=1000)
    assert judge(run, (finding("ST104", "compile", 2000, 3000),)).primary == "compile"


def test_a_bucket_yields_to_one_in_which_a_change_surely_saves_more() -> None:
    run = first_cause_once(compile__tracing=4000, host__python=3800, compute__step=2200)
    graph = finding("ST101", "compile", 500, 1000, severity="consider")
    callback = finding("ST401", "host", 3000, 3800, later_ms=(3000, 3800))
    assert judge(run, (callback, graph)).primary == "host"
    assert judge(run, (callback,)).primary == "compile"  # nothing says what could be saved there
    unsure = replace(callback, gain=Gain(900 * MS, 3800 * MS))
    assert judge(run, (unsure, graph)).primary == "compile"


def test_a_verdict_on_learning_begins_with_its_status_like_all_others() -> None:
    verdict = sample("numerics_nan")["verdict"]
    assert verdict["status"] == "learning_nothing"
    assert verdict["sentence"].startswith("Learning nothing: The loss is NaN")
