"""Simulated trainings: the ledger equals what happened, and each stall gets its bucket and finding.

Every stall, in every form a profiler writes, with and without jitter. What happened is known from
the timeline alone (machine.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stall_analyzer.align.align import align
from stall_analyzer.attribute.attribute import attribute
from stall_analyzer.decode.decode import read_trace
from stall_analyzer.model.findings import Report
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.runs import HostFile, ProfileSession
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.units import PS_PER_NS
from tests.detectors.training import diagnosed
from tests.simulated.forms import FORMS, Form, is_tpu, written
from tests.simulated.machine import MS, US, Machine
from tests.simulated.stalls import HEALTHY, STALLS, Stall, Step, every_step

WITHIN = 0.005  # of the window
JITTER = 0.2
MATRIX = [
    pytest.param(stall, form, jitter, id=f"{stall.name}, {form.name}, jitter {jitter}")
    for stall in (*STALLS, HEALTHY)
    for form in FORMS
    for jitter in (0.0, JITTER)
    if (stall.on_tpu if is_tpu(form) else stall.on_gpu)
]


@dataclass(frozen=True)
class Answer:
    machine: Machine
    timeline: Timeline

    def misplaced(self, ledger: Ledger) -> float:
        """The share of the window that is not where it belongs."""
        begin = -self.timeline.traces[0].shift_ps // PS_PER_NS
        length = self.timeline.window.duration_ps // PS_PER_NS
        truth = self.machine.truth(begin, begin + length)
        found = ledger.buckets_ps.items()
        return sum(abs(truth.get(b, 0) - ps / PS_PER_NS) for b, ps in found) / 2 / length


@cache
def trained(stall: Stall, jitter: float) -> Machine:
    machine = Machine(stall.devices, jitter, seed=7)
    stall.train(machine)
    return machine


def answer(machine: Machine, form: Form) -> Answer:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "host.xplane.pb"
        path.write_bytes(written(machine, form))
        trace = read_trace(HostFile("host", str(path), "xplane", path.stat().st_size))
    return Answer(machine, align([(ProfileSession("session", folder, ()), trace)], None))


@pytest.mark.parametrize(("stall", "form", "jitter"), MATRIX)
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
