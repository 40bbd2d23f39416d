"""Logs as Keras's own TensorBoard callback leaves them. Times are seconds after fit() began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stall_analyzer.align.align import align
from stall_analyzer.events.event_files import read_events
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.runs import EventFile, ProfileSession, Run
from stall_analyzer.model.timeline import Timeline
from tests import event_files as write
from tests.traces import clock, trace_of

NS = 1_000_000_000
BEGIN_S = write.START_S + 0.25  # of fit(): files only tell whole seconds
BEGIN_NS = round(write.START_S) * NS + NS // 4
MODEL = (
    '{"class_name": "Sequential", "config": {"layers": ['
    '{"class_name": "Dense", "config": {"name": "dense", "units": 4}}]}, "compile_config": {%s}}'
)
PROFILED_S = 0.05  # how long a profile lasts
SESSION = ProfileSession("session", "", ())
Logged = Sequence[tuple[int, float]]  # step and time


@dataclass(frozen=True)
class KerasLog:
    """What the callback wrote; what is left out was not written."""

    epochs: Sequence[float] = ()  # when each ended
    first_epoch: int = 0
    loss: float = 1.0
    model: bool = True
    compiled: str = ""  # the model's compile config, as JSON
    graph_s: float | None = None
    profiled: Mapping[int, float] = field(default_factory=dict)  # batches, and when they ended
    batches: Logged = ()
    rate: float | None = None  # epoch_steps_per_second
    evaluated: Logged = ()  # by the optimizer's count of steps
    evaluated_epochs: Sequence[int] = ()
    validation_opened_s: float | None = None
    others: Mapping[str, Logged] = field(default_factory=dict)  # scalars of any name

    def read(self, folder: Path) -> EventLog:
        files = {"train": self._train(), "validation": self._validation()}
        found = []
        for role, records in files.items():
            path = folder / f"{role}.{write.file_name()}"
            path.write_bytes(b"".join(records))
            if records:
                found.append(EventFile(str(path), role, path.stat().st_size))
        return read_events(Run(".", str(folder), (), tuple(found)))

    def _train(self) -> list[bytes]:
        records = [write.framed(write.file_version())]
        if self.model:
            records.append(write.record(write.model(MODEL % self.compiled), at_s=BEGIN_S))
        if self.graph_s is not None:
            records.append(write.framed(write.graph(8, at_s=BEGIN_S + self.graph_s)))
        for number, at_s in self.profiled.items():
            body = write.tensor(write.STRING, write.message(8, b""))
            value = write.tensor_value(f"batch_{number}", body, "graph_run_metadata_graph")
            records.append(write.record(value, at_s=BEGIN_S + at_s, step=number))
        for tag, logged in {"batch_loss": self.batches, **self.others}.items():
            records += _scalars(tag, logged)
        ends = list(enumerate(self.epochs, self.first_epoch))
        records += _scalars("epoch_loss", ends, self.loss)
        if self.rate is not None:
            records += _scalars("epoch_steps_per_second", ends, self.rate)
        return records

    def _validation(self) -> list[bytes]:
        if self.validation_opened_s is None:
            return []
        opened_s = float(int(BEGIN_S + self.validation_opened_s))
        records = [write.framed(write.file_version(at_s=opened_s))]
        records += _scalars("evaluation_loss_vs_iterations", self.evaluated)
        epochs = self.evaluated_epochs or range(len(self.evaluated))
        ends = [(epoch, at_s) for epoch, (_, at_s) in zip(epochs, self.evaluated, strict=True)]
        return records + _scalars("epoch_loss", ends)

    def timeline(
        self,
        folder: Path,
        *planes: bytes,
        profile_s: float | None = None,
        session: ProfileSession = SESSION,
    ) -> Timeline:
        """With a profile of these planes that began that long after fit(), or without any."""
        if profile_s is None:
            return align([], self.read(folder))
        began_ns = BEGIN_NS + round(profile_s * NS)
        trace = trace_of(folder, *planes, clock(began_ns, PROFILED_S))
        return align([(session, trace)], self.read(folder))


def _scalars(tag: str, logged: Logged, value: float = 1.0) -> list[bytes]:
    return [
        write.record(write.scalar(tag, value), at_s=BEGIN_S + at_s, step=step)
        for step, at_s in logged
    ]
