"""The jobs: what each worker does besides training, and what the analyzer must say about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class WorkerPlan:
    """What one worker does that the others do not."""

    input_s: Mapping[int, float] = field(default_factory=dict)  # how long its input takes, by step
    python_s: Mapping[int, float] = field(default_factory=dict)  # it sleeps before the step
    callback_s: Mapping[int, float] = field(default_factory=dict)  # a callback does, in fit
    trace_s: Mapping[int, float] = field(default_factory=dict)  # a graph anew, and slow to trace
    compute_s: Mapping[int, float] = field(default_factory=dict)  # its step computes longer
    dies_before: int | None = None  # it is killed before this step
    vanishes: bool = False  # … without a word to the others, as if its machine were gone
    starts: bool = True


@dataclass(frozen=True)
class Job:
    name: str
    workers: int
    description: str
    plans: Mapping[int, WorkerPlan] = field(default_factory=dict)  # all others just train
    steps: int = 30
    bucket: str = ""  # what the first of the late workers is late with
    finding: str = "ST502"  # that must be there; none if nobody is late
    watched: bool = False  # with the capture, instead of a profile of the whole
    coordinated: bool = False  # by a ParameterServerStrategy; `steps` are rounds of several steps
    fit: bool = False  # … of Keras 2; otherwise a custom loop
    in_graph: bool = False  # the step itself takes its batch, from a distributed dataset
    pace_s: float = 0.0  # how long all workers take for each step
    stopped_after_s: float | None = None  # all are told to end then
    for_scale: bool = False  # run only when asked for: its long traces are the seed of many hosts

    @property
    def late(self) -> tuple[int, ...]:
        """The workers that hold up the others, costliest first."""
        return tuple(sorted(self.plans, key=lambda worker: -self.injected_s(worker)))

    @property
    def ends_early(self) -> bool:
        """A worker of it is killed, vanishes or is never started."""
        return any(not p.starts or p.dies_before is not None for p in self.plans.values())

    @property
    def has_exchanges(self) -> bool:
        """The diaries say when each worker comes to them."""
        return self.watched and not (self.ends_early or self.coordinated)

    def injected_s(self, worker: int) -> float:
        plan = self.plans.get(worker, WorkerPlan())
        parts = (plan.input_s, plan.python_s, plan.callback_s, plan.trace_s, plan.compute_s)
        return sum(sum(part.values()) for part in parts)


STEPS = 30
# The first step is left alone: there all workers come from tracing, each in its own time.
EVERY = range(2, STEPS)

JOBS = (
    Job("even_2", 2, "two workers that do the same", finding=""),
    Job("even_4", 4, "four workers that do the same", finding=""),
    Job(
        "input_2", 2, "the input of worker 1 takes 300 ms a batch",
        {1: WorkerPlan(input_s=dict.fromkeys(EVERY, 0.3))}, bucket="input",
    ),
    Job(
        "input_4", 4, "the input of worker 2 takes 400 ms a batch",
        {2: WorkerPlan(input_s=dict.fromkeys(EVERY, 0.4))}, bucket="input",
    ),
    Job(
        "compile_2", 2, "worker 1 meets a new shape, and takes 6 s to trace it",
        {1: WorkerPlan(trace_s={12: 6.0})}, bucket="compile",
    ),
    Job(
        "compile_4", 4, "worker 3 meets two new shapes, and takes 4 s to trace each",
        {3: WorkerPlan(trace_s={10: 4.0, 20: 4.0})}, bucket="compile",
    ),
    Job(
        "python_2", 2, "worker 0 does something for 200 ms before every other step",
        {0: WorkerPlan(python_s=dict.fromkeys(EVERY[::2], 0.2))}, bucket="host",
    ),
    Job(
        "in_turn_4", 4, "worker 1 waits for input in some steps, worker 3 for Python in others",
        {1: WorkerPlan(input_s=dict.fromkeys(EVERY[::3], 0.8)),
         3: WorkerPlan(python_s=dict.fromkeys(EVERY[1::3], 0.6))}, bucket="input",
    ),
    Job("watched_even_2", 2, "the same as even_2", finding="", watched=True, in_graph=True),
    Job("watched_even_4", 4, "the same as even_4", finding="", watched=True),
    Job(
        "watched_input_2", 2, "the input of worker 1 takes 150 ms a batch",
        {1: WorkerPlan(input_s=dict.fromkeys(EVERY, 0.15))}, bucket="input", watched=True,
        in_graph=True,
    ),
    Job(
        "watched_input_4", 4, "the input of worker 2 takes 150 ms a batch",
        {2: WorkerPlan(input_s=dict.fromkeys(EVERY, 0.15))}, bucket="input", watched=True,
    ),
    Job(
        "watched_compile_2", 2, "worker 1 meets a new shape, and takes 6 s to trace it",
        {1: WorkerPlan(trace_s={12: 6.0})}, bucket="compile", watched=True,
    ),
    Job(
        "watched_compile_4", 4, "worker 3 meets two new shapes, and takes 3 s to trace each",
        {3: WorkerPlan(trace_s={10: 3.0, 20: 3.0})}, bucket="compile", watched=True,
    ),
    Job(
        "watched_python_2", 2, "worker 0 does something for 200 ms before every other step",
        {0: WorkerPlan(python_s=dict.fromkeys(EVERY[::2], 0.2))}, bucket="host", watched=True,
        in_graph=True,
    ),
    Job(
        "watched_python_4", 4, "worker 1 does something for 200 ms before every other step",
        {1: WorkerPlan(python_s=dict.fromkeys(EVERY[::2], 0.2))}, bucket="host", watched=True,
    ),
    Job(
        "watched_slow_2", 2, "worker 1 computes 150 ms longer in each step",
        {1: WorkerPlan(compute_s=dict.fromkeys(EVERY, 0.15))}, bucket="compute", watched=True,
        in_graph=True,
    ),
    Job(
        "watched_slow_4", 4, "worker 3 computes 150 ms longer in each step",
        {3: WorkerPlan(compute_s=dict.fromkeys(EVERY, 0.15))}, bucket="compute", watched=True,
    ),
    Job(
        "watched_in_turn_4", 4, "worker 1 waits for input in some steps, worker 3 for Python",
        {1: WorkerPlan(input_s=dict.fromkeys(EVERY[::3], 0.4)),
         3: WorkerPlan(python_s=dict.fromkeys(EVERY[1::3], 0.3))}, bucket="input", watched=True,
    ),
    Job(
        "servers_even_2", 2, "two workers that do the same, for a coordinator", steps=10,
        finding="", watched=True, coordinated=True,
    ),
    Job(
        "servers_slow_2", 2, "worker 1 computes 180 ms longer in each step, for a coordinator",
        {1: WorkerPlan(compute_s={0: 0.18})}, steps=10, bucket="compute", watched=True,
        coordinated=True,
    ),
    Job(
        "servers_slow_4", 4, "worker 2 computes 180 ms longer in each step, for a coordinator",
        {2: WorkerPlan(compute_s={0: 0.18})}, steps=10, bucket="compute", watched=True,
        coordinated=True,
    ),
    Job(
        "servers_input_2", 2, "the dataset of worker 1 takes 180 ms longer for each batch",
        {1: WorkerPlan(input_s={0: 0.18})}, steps=10, bucket="input", watched=True,
        coordinated=True,
    ),
    Job(
        "servers_input_4", 4, "the dataset of worker 2 takes 180 ms longer for each batch",
        {2: WorkerPlan(input_s={0: 0.18})}, steps=10, bucket="input", watched=True,
        coordinated=True,
    ),
    Job("fit_even_2", 2, "the same as even_2, in fit", finding="", watched=True, fit=True),
    Job(
        "fit_input_2", 2, "the generator of worker 1 takes 150 ms a batch, in fit",
        {1: WorkerPlan(input_s=dict.fromkeys(EVERY, 0.15))}, bucket="input", watched=True, fit=True,
    ),
    Job(
        "fit_callback_2", 2, "a callback of worker 0 takes 200 ms before every other step",
        {0: WorkerPlan(callback_s=dict.fromkeys(EVERY[::2], 0.2))}, bucket="host", watched=True,
        fit=True,
    ),
    Job(
        "fit_callback_4", 4, "a callback of worker 2 takes 200 ms before every other step",
        {2: WorkerPlan(callback_s=dict.fromkeys(EVERY[::2], 0.2))}, bucket="host", watched=True,
        fit=True,
    ),
    Job(
        "fit_compile_2", 2, "worker 1 builds its step again, and takes 6 s to trace it",
        {1: WorkerPlan(trace_s={12: 6.0})}, bucket="compile", watched=True, fit=True,
    ),
    Job(
        "killed_2", 2, "worker 1 is killed before step 60",
        {1: WorkerPlan(dies_before=60)}, 200, finding="ST505", watched=True, pace_s=0.1,
    ),
    Job(
        "killed_4", 4, "worker 2 is killed before step 60",
        {2: WorkerPlan(dies_before=60)}, 200, finding="ST505", watched=True, pace_s=0.1,
    ),
    Job(
        "vanishes_2", 2, "the machine of worker 1 is gone before step 60",
        {1: WorkerPlan(dies_before=60, vanishes=True)}, 200, finding="ST505", watched=True,
        pace_s=0.1,
    ),
    Job(
        "vanishes_4", 4, "the machine of worker 3 is gone before step 60",
        {3: WorkerPlan(dies_before=60, vanishes=True)}, 200, finding="ST505", watched=True,
        pace_s=0.1,
    ),
    Job(
        "never_starts_2", 2, "worker 1 is never started",
        {1: WorkerPlan(starts=False)}, finding="ST504", watched=True, stopped_after_s=45,
    ),
    Job(
        "never_starts_4", 4, "worker 3 is never started",
        {3: WorkerPlan(starts=False)}, finding="ST504", watched=True, stopped_after_s=45,
    ),
    Job(
        "long_2", 2, "worker 1 pauses now and then in thousands of steps",
        {1: WorkerPlan(python_s=dict.fromkeys(range(60, 6000, 60), 0.2))}, 6000, bucket="host",
        for_scale=True,
    ),
)  # fmt: skip
