"""Who waited for whom: by how much, in which steps, and for what."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stall_analyzer.model.units import PS_PER_MS
from stall_analyzer.signals.cluster.gatherings import gatherings_of
from tests.clusters import PUNCTUAL, Way, signals_for, steadily

STEPS = 20


def test_the_extra_time_of_the_last_host_adds_up_to_the_wait_of_the_others(tmp_path: Path) -> None:
    ways = [Way(pause_ms=3 * n, input_ms=20 - n) for n in range(STEPS)]
    job = {"a": steadily(PUNCTUAL), "b": ways, "c": steadily(Way(pause_ms=2))}
    signals = signals_for(tmp_path, job)
    meetings = signals.timeline.meetings
    assert meetings is not None
    met = gatherings_of(meetings, signals.hosts)
    assert len(met) == STEPS
    assert {met.hosts[i] for i in met.last} == {"b"}
    # c itself is late by 2 ms: on average, those who wait for b wait 1 ms less than a does.
    assert met.cost_ps[5] == round((3 * 5 + 15 - 1) * PS_PER_MS)
    assert np.allclose(met.beyond_ps.sum(axis=1)[1:], met.cost_ps[1:], atol=2000)


@pytest.mark.parametrize(
    ("way", "bucket", "cause"),
    [
        (Way(pause_ms=30), "host", "host.python"),
        (Way(input_ms=30), "input", "input.wait"),
        (Way(traced_ms=30), "compile", "compile.tracing"),
        (Way(compute_ms=40), "compute", "compute.step"),
    ],
)
def test_the_reason_is_what_it_does_on_the_way(
    tmp_path: Path, way: Way, bucket: str, cause: str
) -> None:
    ways = [PUNCTUAL, *steadily(way, STEPS - 1)]
    signals = signals_for(tmp_path, {"a": steadily(PUNCTUAL), "b": ways})
    (late,) = signals.stragglers
    assert late.host == "b"
    assert late.cost_ps == 30 * (STEPS - 1) * PS_PER_MS
    assert (late.reason.bucket, late.reason.cause) == (bucket, cause)
    assert late.reason.ps == pytest.approx(late.cost_ps, rel=0.02)
    assert late.late_steps == STEPS - 1
    assert signals.lateness.waited_ps == {"a": late.cost_ps, "b": 0}


def test_clocks_that_are_seconds_apart_change_nothing(tmp_path: Path) -> None:
    job = {"a": steadily(PUNCTUAL), "b": steadily(Way(input_ms=30))}
    right = signals_for(tmp_path, job).stragglers[0]
    wrong = signals_for(tmp_path, job, ahead_s={"b": -4.4}).stragglers[0]
    assert (right.host, right.cost_ps, right.reason) == (wrong.host, wrong.cost_ps, wrong.reason)


def test_late_once_is_told_apart_from_late_always(tmp_path: Path) -> None:
    once = [*steadily(PUNCTUAL, 10), Way(pause_ms=400), *steadily(PUNCTUAL, 9)]
    (late,) = signals_for(tmp_path, {"a": steadily(PUNCTUAL), "b": once}).stragglers
    assert late.once and late.late_steps == 1
    always = signals_for(tmp_path, {"a": steadily(PUNCTUAL), "b": steadily(Way(pause_ms=20))})
    assert not always.stragglers[0].once


def test_several_may_be_late_in_turn(tmp_path: Path) -> None:
    b = [Way(input_ms=40) if n % 2 else PUNCTUAL for n in range(STEPS)]
    c = [PUNCTUAL if n % 2 else Way(pause_ms=30) for n in range(STEPS)]
    signals = signals_for(tmp_path, {"a": steadily(PUNCTUAL), "b": b, "c": c})
    first, second = signals.stragglers
    assert (first.host, first.reason.bucket) == ("b", "input")
    assert (second.host, second.reason.bucket) == ("c", "host")
    steps = {late.step: (late.host, late.cause) for late in signals.lateness.steps}
    assert steps[5] == ("b", "input.wait")
    assert steps[6] == ("c", "host.python")


def test_a_few_milliseconds_are_nobodys_fault(tmp_path: Path) -> None:
    job = {"a": steadily(Way(pause_ms=1)), "b": steadily(Way(pause_ms=3))}
    assert signals_for(tmp_path, job).stragglers == ()


def test_what_comes_before_the_trace_is_not_held_against_a_host(tmp_path: Path) -> None:
    """Processes begin at different times: the first meeting shows that, and nothing else."""
    job = {"a": steadily(PUNCTUAL), "b": [Way(pause_ms=500), *steadily(PUNCTUAL, STEPS - 1)]}
    assert signals_for(tmp_path, job).stragglers[0].cost_ps == 500 * PS_PER_MS
    began_late = signals_for(tmp_path, job, begins_ms={"b": 500})
    assert began_late.lateness.meetings == STEPS
    assert began_late.stragglers == ()
