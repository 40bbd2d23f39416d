"""The signals of one run, behind one door.

A detector never touches a trace itself: it asks here, so that the same question always has the same
answer and the measuring is tested once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from stall_analyzer.align.logged_epoch import STEP_SECONDS
from stall_analyzer.attribute.booked_time import books_of
from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.model.books import Books
from stall_analyzer.model.cluster import Cluster
from stall_analyzer.model.code_lines import CodeLine, CodeStack
from stall_analyzer.model.debug_dump import DebugDump
from stall_analyzer.model.estimate import Estimate
from stall_analyzer.model.event_log import Capture, EventLog, KerasConfig, Series
from stall_analyzer.model.findings import LateHost, Lateness
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import AlignedTrace
from stall_analyzer.model.units import PS_PER_NS
from stall_analyzer.signals.booked_costs import BookedCost, booked_costs
from stall_analyzer.signals.cluster.lateness import lateness_of, stragglers_among
from stall_analyzer.signals.cluster.members import cluster_of
from stall_analyzer.signals.compile.driver_calls import Purpose, driver_calls
from stall_analyzer.signals.compile.functions import FunctionSignals, function_signals
from stall_analyzer.signals.compile.retraces import CapturedRetraces, captured_retraces
from stall_analyzer.signals.coverage import covered_by_all_ps, recorded_spans
from stall_analyzer.signals.ending.console_end import ConsoleSignals, console_signals
from stall_analyzer.signals.ending.endless_data import EndlessData, endless_data
from stall_analyzer.signals.ending.logged_progress import LoggedProgress, progress_of
from stall_analyzer.signals.ending.process_end import Ending, ending_of
from stall_analyzer.signals.ending.stall import Stall
from stall_analyzer.signals.ending.still_running import StillRunning, still_running
from stall_analyzer.signals.estimate.booked import booked_sample
from stall_analyzer.signals.estimate.estimate import estimate_of
from stall_analyzer.signals.estimate.seen import Seen
from stall_analyzer.signals.estimate.windows import sample_of
from stall_analyzer.signals.host.accelerators import DeviceSignals, device_signals
from stall_analyzer.signals.host.between_steps import BetweenSteps, between_steps
from stall_analyzer.signals.host.device_activity import DeviceActivity, device_activity
from stall_analyzer.signals.host.machine import (
    MachineSignals,
    ResidentMemory,
    machine_signals,
    resident_memory,
)
from stall_analyzer.signals.host.op_times import OpSignals, op_signals
from stall_analyzer.signals.host.ops_on_cpu import ops_on_cpu
from stall_analyzer.signals.host.thread_pools import PoolSignals, pool_signals
from stall_analyzer.signals.host.user_lines import code_lines, code_stacks
from stall_analyzer.signals.input.culprit import MOST, Culprit, culprit_of, python_beside
from stall_analyzer.signals.input.input_pipeline import (
    PipelineSignals,
    Spans,
    Stage,
    pipeline_signals,
)
from stall_analyzer.signals.ledger_signals import LedgerSignals
from stall_analyzer.signals.memory.allocators import (
    AllocatorSignals,
    MemoryWait,
    allocator_signals,
    memory_waits,
)
from stall_analyzer.signals.memory.process_growth import ProcessGrowth, process_growth
from stall_analyzer.signals.memory.roofline import Roofline, roofline
from stall_analyzer.signals.numerics.batch_look import BatchLook, batch_look
from stall_analyzer.signals.numerics.batch_size import batch_size
from stall_analyzer.signals.numerics.dead_histograms import HistogramSignals, histogram_signals
from stall_analyzer.signals.numerics.dumped_tensors import (
    Origin,
    ZeroOutputs,
    origin_of,
    zero_outputs,
)
from stall_analyzer.signals.numerics.layer_series import LayerSignals, layer_signals
from stall_analyzer.signals.numerics.learned import has_learned_nothing
from stall_analyzer.signals.numerics.learning import LearningSignals, learning_signals
from stall_analyzer.signals.numerics.stored_layers import StoredLayers, stored_layers


@dataclass(frozen=True)
class Signals(LedgerSignals):
    """One run."""

    def on(self, host: str) -> Signals:
        """The same run, represented by another host."""
        chosen = next(entry for entry in self.hosts if entry.host == host)
        other = Signals(self.timeline, self.hosts, chosen)
        vars(other)["lateness"] = self.lateness  # the same, whoever stands for the run
        return other

    @cached_property
    def sample(self) -> Estimate | None:
        """The estimate, where profiled steps are spread throughout the epoch."""
        return sample_of(self.timeline, self.host)

    @cached_property
    def estimate(self) -> Estimate | None:
        """The whole epoch as it probably was, where not all of it was traced."""
        seen = Seen(self.timeline, self.host, self.traces, self.training_steps, self.pipeline)
        return self.sample or estimate_of(seen)

    @cached_property
    def profiled_part(self) -> Estimate | None:
        """The profiled part of the epoch, where detectors must look only at that."""
        if self.estimate is None:
            return booked_sample(self.timeline, self.host)
        return self.estimate if self.estimate.stretches_ps else None

    @property
    def likely_ledger(self) -> Ledger:
        """The ledger for sums: the exact one or, where not all was traced, the estimate."""
        return self.estimate.ledger if self.estimate is not None else self.host.ledger

    # ------------------------------------------------------------ what was traced and logged

    @cached_property
    def traces(self) -> tuple[AlignedTrace, ...]:
        """Traces of `host` that saw something of the window."""
        return tuple(
            aligned
            for aligned in self.timeline.traces
            if aligned.host == self.host.host and aligned.covered_ps[1] > aligned.covered_ps[0]
        )

    @property
    def events(self) -> EventLog | None:
        return self.timeline.events

    @property
    def keras(self) -> KerasConfig | None:
        return self.events.stored_model if self.events is not None else None

    @property
    def dump(self) -> DebugDump | None:
        return self.timeline.dump

    @cached_property
    def origin(self) -> Origin | None:
        """Where the first NaN or infinity that mattered was produced."""
        return origin_of(self.dump) if self.dump is not None else None

    @cached_property
    def zero_outputs(self) -> tuple[ZeroOutputs, ...]:
        return zero_outputs(self.dump) if self.dump is not None else ()

    @cached_property
    def histograms(self) -> HistogramSignals:
        return histogram_signals(self.events)

    @cached_property
    def driver_calls(self) -> dict[Purpose, int]:
        """What the device's driver was asked for, in picoseconds by purpose."""
        return driver_calls(self.traces)

    @cached_property
    def ops_on_cpu(self) -> tuple[Spans, dict[str, int]]:
        """When ops computed on the host inside steps, and how long by type."""
        return ops_on_cpu(self.traces)

    @cached_property
    def device_activity(self) -> tuple[DeviceActivity, ...]:
        """What each device that was traced did."""
        return device_activity(self.traces)

    @cached_property
    def pipeline(self) -> PipelineSignals:
        return pipeline_signals(self.traces)

    @cached_property
    def input_culprit(self) -> Culprit | None:
        """What training waits for in every epoch, where one reason explains most of it.

        A pipeline that is fast enough but does not work ahead has no culprit.
        """
        culprit = culprit_of(self.pipeline, self.intervals_of("input.wait"))
        if culprit is None and self.causes_ps["input.contention"]:
            return python_beside(self.pipeline)
        if culprit is None or self.pipeline.works_ahead:
            return culprit
        hidden = self.hidden_if_ahead_ps(self.produce_ps(culprit.stage))
        return culprit if hidden < MOST * self.causes_ps["input.wait"] else None

    def produce_ps(self, through: Stage | None = None) -> int:
        """How long it takes to produce the batches of one call."""
        batches = (self.keras and self.keras.steps_per_execution) or 1
        return batches * self.pipeline.produce_ps(through)

    def hidden_if_ahead_ps(self, produce_ps: int) -> int:
        """How much shorter the waits would be if each call's data took `produce_ps` to produce, in
        the background."""
        start, end = self.step_periods()
        waits = self.time_of(start, end, "input.wait")
        left = np.maximum(produce_ps - (end - start - waits), 0)
        return int(np.maximum(waits - left, 0).sum())

    def hidden_if_far_ahead_ps(self, produce_ps: int) -> int:
        """The same with room for any number of batches: while the first step is compiled, many of
        them are produced. Then training waits only if production as a whole falls behind."""
        start, end = self.step_periods()
        waits = self.time_of(start, end, "input.wait")
        busy_before = np.cumsum(end - start - waits) - (end - start - waits)
        late = produce_ps * np.arange(1, len(waits) + 1) - busy_before
        return int(max(waits.sum() - max(late.max(initial=0), 0), 0))

    @cached_property
    def functions(self) -> Sequence[FunctionSignals]:
        return function_signals(self.traces, self._tiling)

    @cached_property
    def allocators(self) -> Sequence[AllocatorSignals]:
        return allocator_signals(self.traces)

    @cached_property
    def memory_waits(self) -> tuple[MemoryWait, ...]:
        return memory_waits(self.traces)

    @cached_property
    def between_steps(self) -> BetweenSteps:
        """What the training thread does while no graph runs."""
        return between_steps(self.traces, self._tiling)

    @cached_property
    def ops(self) -> OpSignals:
        return op_signals(self.traces)

    @cached_property
    def pools(self) -> PoolSignals:
        environment = self.capture.environment if self.capture is not None else None
        return pool_signals(self.traces, environment)

    @cached_property
    def devices(self) -> DeviceSignals:
        return device_signals(self.traces)

    @cached_property
    def roofline(self) -> Roofline:
        """How much of the device's work runs at the speed of its memory."""
        return roofline(self.traces)

    @cached_property
    def lateness(self) -> Lateness:
        """Who made whom wait, among all hosts."""
        return lateness_of(self.timeline, self.hosts)

    @cached_property
    def cluster(self) -> Cluster:
        return cluster_of(self.timeline)

    @cached_property
    def recorded_spans(self) -> Mapping[str, Spans]:
        """When each host was recorded."""
        return recorded_spans(self.timeline)

    @cached_property
    def covered_by_all_ps(self) -> int:
        """How long all of them were recorded together: only that time shows who waits."""
        return covered_by_all_ps(self.recorded_spans)

    @cached_property
    def stragglers(self) -> tuple[LateHost, ...]:
        """Hosts that make the others wait enough to matter, costliest first."""
        return stragglers_among(self.lateness.hosts, self.covered_by_all_ps)

    @cached_property
    def progress(self) -> LoggedProgress | None:
        return progress_of(self.events)

    @property
    def capture(self) -> Capture | None:
        """The capture of the process whose ledger represents the run."""
        captures = self.events.captures if self.events is not None else ()
        mine = [capture for capture in captures if capture.trace_name == self.host.host]
        return next(iter((*mine, *captures)), None)

    def captured_in_window(self, tag: str) -> Series | None:
        """The part of a captured scalar that was written in the first epoch."""
        series = self.capture.series.get(tag.removeprefix(Tag.ALL)) if self.capture else None
        zero_ns = self.timeline.window.start_unix_ns
        if series is None or zero_ns is None:
            return None
        at_ps = (series.wall_ns - zero_ns) * PS_PER_NS
        inside = (at_ps >= 0) & (at_ps <= self.window_ps)
        return Series(series.step[inside], series.wall_ns[inside], series.value[inside])

    @property
    def capture_steps(self) -> int:
        """Steps that had finished when the capture ended."""
        capture = self.capture
        if capture is None:
            return 0
        looked = [look.step for look in capture.looks[-1:]]
        steps = capture.series.get(STEP_SECONDS)
        return max([*looked, int(steps.step[-1]) + 1 if steps else 0])

    @cached_property
    def stall(self) -> Stall | None:
        """The time without progress that the run ends with, if it does."""
        if self.events is None or not self.events.captures:
            return None
        from stall_analyzer.signals.ending.stalled import stall_of_run  # noqa: PLC0415  few need it

        return stall_of_run(self.events.captures, has_pipeline=bool(self.pipeline.stages))

    @cached_property
    def endless_data(self) -> EndlessData | None:
        return endless_data(self.capture, (stage.path for stage in self.pipeline.stages))

    @cached_property
    def ending(self) -> Ending | None:
        if self.events is None or self.capture is None:
            return None
        return ending_of(self.capture, self.events.read_ns)

    @cached_property
    def still_running(self) -> StillRunning | None:
        return still_running(self.events) if self.console.end is None else None

    @cached_property
    def console(self) -> ConsoleSignals:
        return console_signals(self.timeline, self.capture, self.ending)

    @property
    def books(self) -> Books | None:
        """The capture's books, over its whole training."""
        return books_of(self.events, self.host.host)

    @cached_property
    def booked_costs(self) -> tuple[BookedCost, ...]:
        """What the capture's books say, by name; costliest first."""
        return booked_costs(self.books, self.timeline.window)

    @cached_property
    def captured_retraces(self) -> CapturedRetraces | None:
        return captured_retraces(self.timeline)

    @cached_property
    def machine(self) -> MachineSignals | None:
        return machine_signals(self.capture, self.timeline.window)

    @cached_property
    def code_lines(self) -> tuple[CodeLine, ...]:
        """Lines of the user's own code and what they cost in the first epoch, costliest first."""
        stacks = self.capture.stacks if self.capture is not None else None
        return code_lines(self.code_stacks, stacks.source if stacks is not None else {})

    @cached_property
    def code_stacks(self) -> tuple[CodeStack, ...]:
        """All Python that was seen running, costliest first, except where training never continues:
        the samples end long before that wait does."""
        contention_ps, stall = self.causes_ps["input.contention"], self.stall
        stacks = code_stacks(self.capture, self.timeline.window, contention_ps)
        return tuple(s for s in stacks if stall is None or not stall.stands_at(s.frames))

    @cached_property
    def resident_memory(self) -> ResidentMemory | None:
        return resident_memory(self.capture)

    @cached_property
    def process_growth(self) -> ProcessGrowth | None:
        return process_growth(self.resident_memory, self.books, self.timeline)

    @cached_property
    def layers(self) -> LayerSignals:
        return layer_signals(self.capture)

    @cached_property
    def batches(self) -> BatchLook | None:
        """What a capture saw of the batches."""
        return batch_look(self.events, self.capture)

    @cached_property
    def learning(self) -> LearningSignals:
        label_cost = self.batches.known_baseline if self.batches is not None else None
        return replace(learning_signals(self.timeline), label_cost=label_cost)

    @cached_property
    def stored_layers(self) -> StoredLayers:
        return stored_layers(self.keras)

    @cached_property
    def learned_nothing(self) -> bool:
        """Whether the loss confirms that nothing was learned."""
        return has_learned_nothing(self.learning)

    @cached_property
    def batch_size(self) -> int | None:
        return batch_size(self.events, self.keras)

    @property
    def why_weights_survived(self) -> str:
        """What shows that they survived a loss that was not a number; empty where nothing does."""
        skips_updates = self.causes_ps["numerics.skipped_update"] > 0
        return self.learning.why_weights_survived(skips_updates)
