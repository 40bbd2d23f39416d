"""A simulated training, written in a form, read back and divided."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from stall_analyzer.align.align import align
from stall_analyzer.decode.decode import read_trace
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.runs import HostFile, ProfileSession
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.units import PS_PER_NS
from tests.simulated.forms import FORMS, Form, is_tpu, written
from tests.simulated.machine import Machine
from tests.simulated.stalls import HEALTHY, STALLS, Stall

WITHIN = 0.005  # of the window
JITTER = 0.2
MATRIX = tuple(
    (stall, form, jitter)
    for stall in (*STALLS, HEALTHY)
    for form in FORMS
    for jitter in (0.0, JITTER)
    if (stall.on_tpu if is_tpu(form) else stall.on_gpu)
)


@dataclass(frozen=True)
class Answer:
    machine: Machine
    timeline: Timeline

    def misplaced(self, ledger: Ledger) -> float:
        """The share of the window that is in the wrong bucket."""
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
