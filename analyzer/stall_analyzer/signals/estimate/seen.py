"""What an estimate is based on: the marks of the log, what was traced, and the input pipeline."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from stall_analyzer.align.window import BEGIN_TOLERANCE_PS
from stall_analyzer.model.columns import median
from stall_analyzer.model.event_log import KerasConfig
from stall_analyzer.model.intervals import time_in
from stall_analyzer.model.ledger import HostLedger
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace, Step, Timeline
from stall_analyzer.signals.estimate.parts import UNTRACED
from stall_analyzer.signals.estimate.production import Production, production_of
from stall_analyzer.signals.input.input_pipeline import PipelineSignals

PROFILED_BATCH = "Profiled batch"


@dataclass(frozen=True)
class Untraced:
    """Picoseconds of the window that were not traced, by part of the epoch."""

    first_step: int
    steps: int
    validation: int
    epoch_end: int


@dataclass(frozen=True)
class Seen:
    """One run, as the host that represents it saw it."""

    timeline: Timeline
    host: HostLedger
    traces: tuple[AlignedTrace, ...]  # of that host, in the window
    training_steps: tuple[Step, ...]
    pipeline: PipelineSignals

    @property
    def window_ps(self) -> int:
        return self.timeline.window.duration_ps

    @property
    def later_epoch_ps(self) -> int | None:
        later = self.timeline.later_epochs_ps
        return int(median(later)) if later else None

    @property
    def first_step_end_ps(self) -> int:
        """When the first step was certainly over; 0 where that is not known."""
        first = self.timeline.first_step
        return first.end_ps if first is not None else 0

    @property
    def begin_was_traced(self) -> bool:
        """Whether the ledger knows the first step, even if nothing marks its end."""
        return any(
            trace.covered_ps[0] <= BEGIN_TOLERANCE_PS
            and trace.clock.source not in ("none", "session name")
            for trace in self.traces
        )

    @property
    def keras(self) -> KerasConfig | None:
        events = self.timeline.events
        return events.stored_model if events is not None else None

    @property
    def batches_logged(self) -> bool:
        events = self.timeline.events
        return events is not None and any(tag.startswith("batch_") for tag in events.train)

    @property
    def stopping_ps(self) -> int:
        """The least time that stopping the profiler took, in the middle of the steps.

        If it does not fit, the time zone of the session's name was guessed wrong. A capture stops
        the profiler in its own thread, and training continues.
        """
        return sum(
            trace.stopping_ps
            for trace in self.traces
            if trace.covered_ps[1] + trace.stopping_ps < self.window_ps
            and not self._is_captured(trace)
        )

    def _is_captured(self, trace: AlignedTrace) -> bool:
        events, name = self.timeline.events, trace.session.rpartition("/")[2]
        captures = events.captures if events is not None else ()
        return any(window.session == name for c in captures for window in c.windows)

    @property
    def keras_profiles(self) -> bool:
        """Whether Keras itself ran the profiler, from one batch to another: Keras 3 marks them."""
        return any(PROFILED_BATCH in aligned.trace.names for aligned in self.traces)

    @property
    def loss_is_no_number(self) -> bool:
        """Whether the loss that was logged for the first epoch is NaN or infinite."""
        events = self.timeline.events
        losses = events.train.get("epoch_loss") if events is not None else None
        return losses is not None and len(losses) > 0 and not np.isfinite(losses.value[0])

    @cached_property
    def production(self) -> Production | None:
        profiled_ps = sum(end - begin for begin, end in (t.covered_ps for t in self.traces))
        return production_of(self.pipeline, profiled_ps)

    @cached_property
    def untraced(self) -> Untraced:
        phases = {phase.name: phase for phase in self.timeline.phases}
        validation, end = phases.get("validation"), phases.get("epoch_end")
        after_training = validation or end
        training_end = after_training.start_ps if after_training is not None else self.window_ps
        over = validation.end_ps if validation is not None else training_end
        marks = [0, self.first_step_end_ps, training_end, over, self.window_ps]
        bounds = np.maximum.accumulate(marks)
        found = time_in(self.host.ledger.tiling, bounds[:-1], bounds[1:], np.array([UNTRACED]))
        return Untraced(*(int(ps) for ps in found))
