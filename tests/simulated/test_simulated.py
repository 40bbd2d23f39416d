"""Simulated trainings: the ledger equals what happened, and each stall gets its bucket and finding.

Every stall, in every form a profiler writes, with and without jitter. What happened is known from
the timeline alone (machine.py).
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stall_analyzer.attribute.attribute import attribute
from stall_analyzer.model.findings import Report
from tests.detectors.training import diagnosed
from tests.simulated.forms import FORMS, Form
from tests.simulated.judged import JITTER, MATRIX, WITHIN, answer, trained
from tests.simulated.machine import MS, US, Machine
from tests.simulated.stalls import Stall, Step, every_step

CASES = [
    pytest.param(*case, id=f"{case[0].name}, {case[1].name}, jitter {case[2]}") for case in MATRIX
]


@pytest.mark.parametrize(("stall", "form", "jitter"), CASES)
def test_each_stall_gets_its_bucket_its_finding_and_its_time(
    stall: Stall, form: Form, jitter: float
) -> None:
    found = answer(trained(stall, jitter), form)
    report: Report = diagnosed(found.timeline)
    ledger = report.hosts[0].ledger
    assert sum(ledger.buckets_ps.values()) == found.timeline.window.duration_ps
    assert found.misplaced(ledger) <= WITHIN
    assert report.verdict.primary == stall.bucket
    ids = {finding.id: finding for finding in report.findings}
    if stall.findings:
        assert ids.keys() & set(stall.findings)
    else:
        assert not [finding for finding in ids.values() if finding.severity == "act"]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    step=st.builds(
        Step,
        kernels=st.integers(1, 60),
        kernel=st.floats(1 * US, 2 * MS),
        input_wait=st.floats(1 * US, 20 * MS),
        python=st.floats(50 * US, 20 * MS),
        copy=st.floats(10 * US, 10 * MS),
        pinned=st.booleans(),
        blocking=st.booleans(),
        back=st.floats(1 * US, 10 * MS),
        waits=st.booleans(),
    ),
    form=st.sampled_from(FORMS),
    seed=st.integers(0, 1000),
)
def test_any_mixture_is_divided_as_it_happened(step: Step, form: Form, seed: int) -> None:
    machine = Machine(jitter=JITTER, seed=seed)
    every_step(step)(machine)
    found = answer(machine, form)
    ledger = attribute(found.timeline)[0].ledger
    assert sum(ledger.buckets_ps.values()) == found.timeline.window.duration_ps
    assert found.misplaced(ledger) <= WITHIN
