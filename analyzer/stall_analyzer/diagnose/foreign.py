"""Programs of other frameworks: what can be said about them, without advice for TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.findings import Change, Finding, Verdict
from stall_analyzer.model.foreign import ForeignTrace
from stall_analyzer.model.format import counted, percent, seconds
from stall_analyzer.model.kinds import Bucket, Framework
from stall_analyzer.model.units import PS_PER_NS
from stall_analyzer.signals.signals import Signals

NAMES: dict[Framework, str] = {"jax": "JAX", "pytorch_xla": "PyTorch/XLA"}
OF_CAPTURES: dict[Framework, str] = {"jax": "JAX", "pytorch": "PyTorch"}
# Findings that rely only on the logged loss. All others assume TensorFlow or Keras.
ABOUT_THE_LOSS = frozenset({"ST301", "ST302", "ST305", "ST306"})
ABOUT_THE_END = frozenset({"ST510", "ST511"})  # what hangs or dies
# What most of the time went to is worth naming even if nothing marks training.
MOST = 0.5
# What devices and the compiler show for any XLA program.
SEEN_IN_ANY: tuple[Bucket, ...] = ("compute", "compile", "memory", "communication")
DEVICE_CAUSES = (
    "compute.device", "communication.collective", "memory.transfer", "input.host_to_device_copy"
)  # fmt: skip
READERS = "Perfetto (ui.perfetto.dev) and Holistic Trace Analysis can read PyTorch's"


def without_our_frameworks(findings: Mapping[str, Finding]) -> dict[str, Finding]:
    """Only what holds for any framework, without the code, which is for TensorFlow."""
    return {
        id: replace(finding, change=Change(finding.change.text))
        for id, finding in findings.items()
        if id in ABOUT_THE_LOSS | ABOUT_THE_END
    }


def judged_as_foreign(signals: Signals) -> Verdict | None:
    """None for TensorFlow and Keras."""
    timeline = signals.timeline
    if not timeline.is_foreign:
        return None
    if timeline.events is not None and timeline.events.other_backend and not timeline.foreign:
        return Verdict("unknown", "unknown", _of_a_capture(signals), 0.0)
    if timeline.foreign:
        return Verdict("unknown", "unknown", _of_pytorch(timeline.foreign), 0.0)
    if timeline.framework in NAMES:
        return _of_an_xla_program(signals)
    if timeline.framework == "other" and timeline.window.duration_ps == 0 and signals.events:
        return Verdict("unknown", "unknown", _of_scalars(signals.events), 0.0)
    return None


def _of_a_capture(signals: Signals) -> str:
    """A capture that cannot look into the steps: only their times are known."""
    timeline = signals.timeline
    name = OF_CAPTURES.get(timeline.framework, "another framework")
    took = ""
    if timeline.window.epoch is not None:
        later = sorted(timeline.later_epochs_ps)
        median = f", later ones {seconds(later[len(later) // 2])}" if later else ""
        took = f": the first epoch took {seconds(signals.window_ps)}{median}"
    return (
        f"Trained with {name}{took}. Where the time went is not known: a capture can see "
        f"inside TensorFlow's steps only."
    )


def _of_pytorch(traces: tuple[ForeignTrace, ...]) -> str:
    longest = max(traces, key=lambda trace: trace.duration_ps)
    which = (
        "This is a PyTorch trace" if len(traces) == 1 else f"These are {len(traces)} PyTorch traces"
    )
    of_it = "" if len(traces) == 1 else "the longest shows "
    return (
        f"{which}: {of_it}{_shown(longest)}. Where the time went is not analyzed: this tool reads "
        f"TensorFlow's profiles; {READERS}."
    )


def _shown(trace: ForeignTrace) -> str:
    """What the sums of a PyTorch trace say."""
    steps, duration = trace.steps, trace.duration_ps
    said = [f"{seconds(duration)} without marked steps"]
    if steps:
        each = (
            f"of {seconds(trace.step_ps)}" if steps == 1 else f"of about {seconds(trace.step_ps)}"
        )
        said = [f"{steps:,} step{'s' if steps > 1 else ''} {each} in {seconds(duration)}"]
    if trace.device_ps:
        said.append(f"its GPU was at work for {percent(trace.device_ps, duration)} of that")
    if trace.loader_ps:
        said.append(f"{seconds(trace.loader_ps)} went to waiting for a DataLoader")
    return "; ".join(said)


def _of_an_xla_program(signals: Signals) -> Verdict:
    """What the devices and the compiler did: no more is known about such a program."""
    buckets, window = signals.buckets_ps, signals.window_ps
    primary: Bucket = max(SEEN_IN_ANY, key=lambda bucket: buckets[bucket])
    if buckets[primary] <= MOST * window:
        primary = "unknown"
    name, count = NAMES[signals.timeline.framework], len(signals.training_steps)
    steps = f", with {counted(count, 'step')} on its device" if count else ""
    why = (
        "What its steps were waiting for is not known"
        if count
        else "No training step was recognized in it"
    )
    sentence = (
        f"A {name} program: {seconds(window)} was traced{steps}{_done(signals)}. {why}, so "
        f"nothing can be said about an epoch."
    )
    return Verdict("unknown", primary, sentence, 0.5 if primary != "unknown" else 0.0)


def _done(signals: Signals) -> str:
    """What devices, the compiler and the profiler did; empty if nothing was seen."""
    buckets, window, said = signals.buckets_ps, signals.window_ps, []
    if signals.devices.at_work:
        count = len(signals.devices.at_work)
        who = f"at least one of {count} devices" if count > 1 else "a device"
        at_work = sum(signals.causes_ps[cause] for cause in DEVICE_CAUSES)
        copying = at_work - signals.causes_ps["compute.device"]
        copying -= signals.causes_ps["communication.collective"]
        waits = f" ({percent(copying, window)} in copies)" if copying > MOST * at_work else ""
        said.append(f"{who} was at work for {percent(at_work, window)} of that time{waits}")
    if buckets["compile"]:
        said.append(f"compiling took {seconds(buckets['compile'])}")
    if buckets["profiler"] > MOST * window:
        said.append(f"the profiler itself took {seconds(buckets['profiler'])}")
    return f"; {_and(said)}" if said else ""


def _of_scalars(events: EventLog) -> str:
    """About event files that TensorFlow did not write, when nothing else is known."""
    scalars = sum(map(len, events.train.values()))
    if not scalars:
        return "The event files were not written by TensorFlow, and contain no scalars."
    tags = f"{len(events.train):,} tags" if len(events.train) > 1 else "one tag"
    # Other files in the folder may belong to other runs.
    longest = max(events.train.values(), key=len)
    lasted_ps = int(longest.wall_ns.max() - longest.wall_ns.min()) * PS_PER_NS
    lasted = f" over {seconds(lasted_ps)}" if lasted_ps else ""
    reached = f", up to step {int(longest.step.max()):,}" if longest.step.max() > 0 else ""
    return (
        f"The event files contain scalars from a loop outside TensorFlow, in the format that "
        f"PyTorch's SummaryWriter writes: {counted(scalars, 'value')} of {tags}{lasted}{reached}. "
        f"There is no profile that shows where the time went."
    )


def _and(parts: list[str]) -> str:
    *before, last = parts
    return f"{', '.join(before)} and {last}" if before else last
