"""What the event files of a run contain: what `events` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from itertools import pairwise
from typing import NamedTuple

from stall_analyzer.captures.capture_format import MarkName, StopReason, WindowEvent
from stall_analyzer.captures.capture_records import (
    EndRecord,
    Environment,
    MarkRecord,
    ModelRecord,
    NoteRecord,
    PreflightRecord,
    WeightsRecord,
    WindowRecord,
)
from stall_analyzer.captures.look_records import DumpRecord, Look, WorkRecord
from stall_analyzer.model.books import Books
from stall_analyzer.model.notes import Note
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.sampled_stacks import SampledStacks
from stall_analyzer.model.units import Float64s, Int64s


@dataclass(frozen=True)
class Series:
    """A scalar tag over time, in the order written."""

    step: Int64s
    wall_ns: Int64s
    value: Float64s

    def __len__(self) -> int:
        return len(self.step)


@dataclass(frozen=True)
class KerasConfig:
    """What the TensorBoard callback stored about the model; None for what it did not say."""

    wall_ns: int
    model_class: str
    # class_name, name, activation, units, dtype …; `settings` of its initializers and such
    layers: tuple[Mapping[str, object], ...]
    optimizer: str | None = None
    learning_rate: float | None = None
    loss: str | None = None
    run_eagerly: bool | None = None
    jit_compile: bool | str | None = None
    steps_per_execution: int | None = None
    optimizer_config: Mapping[str, object] = field(default_factory=dict)
    compile_config: Mapping[str, object] = field(default_factory=dict)
    is_chain: bool = False  # each layer feeds only the next one


class HistogramSums(NamedTuple):
    """Sums over the histograms of one tag. Not a dataclass: a reader creates thousands of them."""

    records: int = 0
    zero_run: int = 0  # how many of the last records hold nothing but zeros
    same_run: int = 0  # … are the same to the last bit


@dataclass(frozen=True)
class Capture:
    """What StallCallback or watch recorded about one process, each kind in order of time."""

    environment: Environment = field(default_factory=Environment)
    models: tuple[ModelRecord, ...] = ()  # one for each fit that reached its first step
    weights: tuple[WeightsRecord, ...] = ()  # at the end of the first epochs
    marks: tuple[MarkRecord, ...] = ()
    windows: tuple[WindowRecord, ...] = ()
    beats: tuple[Look, ...] = ()
    dumps: tuple[DumpRecord, ...] = ()
    works: tuple[WorkRecord, ...] = ()  # what TensorFlow was doing while it hung
    notes: tuple[NoteRecord, ...] = ()
    preflights: tuple[PreflightRecord, ...] = ()  # checks before the first epoch
    end: EndRecord | None = None  # None if it was killed, or is still running
    first_ns: int = 0  # the times of its first and last record or scalar
    last_ns: int = 0
    series: Mapping[str, Series] = field(default_factory=dict)  # by tag, without "stall/"
    books: Books | None = None
    stacks: SampledStacks | None = None

    @property
    def trains(self) -> bool:
        """Whether training ever began in it."""
        return bool(self.marks)

    @property
    def model(self) -> ModelRecord | None:
        """The model of the first fit."""
        return self.models[0] if self.models else None

    @property
    def is_one_model(self) -> bool:
        """Whether all fits train the same model. Keras gives the layers of each model new names."""
        layers = {model.layers for model in self.models}
        return len(layers) == 1 and () not in layers

    @property
    def trace_name(self) -> str:
        """What its traces are called: host, and task in a cluster."""
        task = self.environment.task
        host = self.environment.host
        return host if task is None else f"{host}-{task.type}-{task.index}"

    @property
    def first_fit(self) -> tuple[MarkRecord, ...]:
        """The marks of only the first fit(), up to an error that ended it."""
        return self.fits[0] if self.fits else ()

    @property
    def fits(self) -> tuple[tuple[MarkRecord, ...], ...]:
        """The marks of each fit()."""
        errors = [dump.ns for dump in self.dumps if dump.reason == StopReason.EXCEPTION]
        marks = [mark for mark in self.marks if not errors or mark.ns < errors[0]]
        begins = [i for i, mark in enumerate(marks) if mark.what == MarkName.FIT_BEGIN]
        bounds = [0, *begins[1:], len(marks)]
        return tuple(tuple(marks[i:j]) for i, j in pairwise(bounds)) if marks else ()

    @property
    def steps_of_first_epoch(self) -> int | None:
        """None while it is not over."""
        steps = [
            [mark.step or 0 for mark in self.first_fit if mark.what == what]
            for what in (MarkName.EPOCH_BEGIN, MarkName.EPOCH_END)
        ]
        return steps[1][0] - steps[0][0] if all(steps) else None

    @property
    def looks(self) -> tuple[Look, ...]:
        """Beats and dumps in order of time."""
        return tuple(sorted((*self.beats, *self.dumps), key=lambda look: look.ns))

    def saved(self, session: str) -> WindowRecord | None:
        """The window that was saved as this session."""
        found = (w for w in self.windows if w.what == WindowEvent.SAVED and w.session == session)
        return next(found, None)

    def opened(self, session: str) -> WindowRecord | None:
        """When the window was opened that was saved as this session."""
        before: WindowRecord | None = None
        for record in self.windows:
            if record.what == WindowEvent.OPENED:
                before = record
            elif record.what == WindowEvent.SAVED and record.session == session:
                return before
        return None


@dataclass(frozen=True)
class EventLog:
    """Scalars and wall times of a run's event files."""

    train: Mapping[str, Series]
    validation: Mapping[str, Series]
    keras: KerasConfig | None
    first_wall_ns: int | None  # earliest and latest record of any kind
    last_wall_ns: int | None
    graph_wall_ns: int | None  # when a graph was written
    records: int
    notes: tuple[Note, ...] = ()
    histograms: Mapping[str, HistogramSums] = field(default_factory=dict)  # from training
    captures: tuple[Capture, ...] = ()  # one per process, the leader of a cluster first
    read_ns: int | None = None  # when the files were read
    # Number and end of each batch that Keras says it profiled.
    profiled_batches: tuple[tuple[int, int], ...] = ()
    # When the first training file and the first validation file were created, in whole seconds.
    opened_ns: int | None = None
    validation_opened_ns: int | None = None
    foreign_writer: bool = False  # none of the files was written by TensorFlow
    fits: int = 1  # calls of fit() whose epoch numbers continue
    captured_keras: KerasConfig | None = None  # the same as `keras`, as a capture stored it
    # Later fits in the same process: with another model, or with epochs from 0 again.
    later_fits: tuple[EventLog, ...] = ()

    @property
    def capture(self) -> Capture | None:
        """The capture that represents the run."""
        return self.captures[0] if self.captures else None

    @property
    def stored_model(self) -> KerasConfig | None:
        """The stored model, from the callback or a capture."""
        return self.keras or self.captured_keras

    @property
    def speaks_keras(self) -> bool:
        """Keras also trains with JAX and PyTorch; it and a capture leave their own records."""
        return self.keras is not None or bool(self.captures)

    @property
    def other_backend(self) -> str:
        """What a captured program trains with, as Keras names it, if that is not TensorFlow."""
        backend = self.capture.environment.backend if self.capture is not None else None
        return "" if backend in (None, "tensorflow") else backend

    @property
    def is_foreign(self) -> bool:
        """Neither TensorFlow nor Keras wrote any of it: what its scalars mean is not known."""
        return self.foreign_writer and not self.speaks_keras
