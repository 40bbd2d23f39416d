"""From the training thread, the executors and the devices to one ledger per host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stall_analyzer.attribute.allocator import allocator_regions, allocator_rows
from stall_analyzer.attribute.devices import device_view
from stall_analyzer.attribute.executor import executor_work, run_tiling
from stall_analyzer.attribute.numerics import wasted_from_ps
from stall_analyzer.attribute.refine import (
    relabel,
    relabel_inside,
    with_first_wait,
    with_skipped_updates,
    with_warm_up,
)
from stall_analyzer.attribute.thread import FOLLOW, thread_tiling
from stall_analyzer.attribute.untrained import untrained_tiling
from stall_analyzer.attribute.xla import xla_regions
from stall_analyzer.causes import ONE_TIME, code, codes_of_bucket
from stall_analyzer.intervals import NOTHING, Tiling, label_at, simplify
from stall_analyzer.model import AlignedTrace, HostLedger, Int64s, Ledger, Timeline, Trace
from stall_analyzer.names import rows_named


def attribute(timeline: Timeline) -> tuple[HostLedger, ...]:
    """One ledger per host; without any trace, one that says so."""
    if not timeline.traces:
        return (HostLedger("", _untraced_ledger(timeline), 0, None, {}),)
    hosts = dict.fromkeys(aligned.trace.host for aligned in timeline.traces)
    return tuple(
        _host_ledger(host, [a for a in timeline.traces if a.trace.host == host], timeline)
        for host in hosts
    )


def _host_ledger(host: str, parts: Sequence[AlignedTrace], timeline: Timeline) -> HostLedger:
    """Sessions of one host see different parts of the window: lay them over each other."""
    duration = timeline.window.duration_ps
    tiling = Tiling(np.array([0, duration]), np.array([NOTHING]))
    for part in parts:
        begin, end = part.covered_ps
        if begin < end:
            traced = _traced(part, timeline, begin - part.shift_ps, end - part.shift_ps)
            tiling = _overlay(tiling, Tiling(traced.bounds + part.shift_ps, traced.labels))
    tiling = relabel(tiling, tiling.labels == NOTHING, "unknown.not_traced")
    tiling = _with_wasted(tiling, timeline)
    lengths = np.diff(tiling.bounds)
    untraced = lengths[tiling.labels == code("unknown.not_traced")].sum()
    threads = [p.trace.lines[p.training.line].name for p in parts if p.training]
    return HostLedger(
        host=host,
        ledger=_ledger(tiling),
        covered_ps=duration - int(untraced),
        training_thread=threads[0] if threads else None,
        evidence=_evidence(parts),
        notes=tuple(note for part in parts for note in part.trace.notes),
    )


def _traced(aligned: AlignedTrace, timeline: Timeline, begin: int, end: int) -> Tiling:
    """Causes over what the trace covers, in trace time."""
    trace, training = aligned.trace, aligned.training
    if training is None:
        tiling = untrained_tiling(trace, begin, end)
    else:
        thread = thread_tiling(trace, training, begin, end)
        regions = (*xla_regions(trace), *allocator_regions(trace, training))
        runs = run_tiling(executor_work(trace, training), regions, _default(trace), begin, end)
        tiling = _follow(thread, runs)
        tiling = with_warm_up(tiling, trace, training)
        tiling = with_skipped_updates(tiling, training)
        start, stop = _training_steps(timeline, -aligned.shift_ps)
        tiling = with_first_wait(tiling, trace, start, stop)
    view = device_view(trace, begin, end)
    if view is None or (view.tiling.labels == NOTHING).all():
        return tiling
    # With a device at work, the executors on the host only launch kernels.
    launching = np.isin(tiling.labels, codes_of_bucket("compute"))
    return _overlay(view.tiling, relabel(tiling, launching, "host.dispatch"))


def _default(trace: Trace) -> int:
    """What a graph run is where nothing shows; without executor events nothing ever does."""
    shown = rows_named(trace, lambda name: name.startswith("ExecutorState::"))
    return code("compute.runtime" if len(shown) else "unknown.no_evidence")


def _follow(thread: Tiling, runs: Tiling) -> Tiling:
    bounds = np.union1d(thread.bounds, runs.bounds)
    at = bounds[:-1]
    own = label_at(thread, at)
    return simplify(Tiling(bounds, np.where(own == FOLLOW, label_at(runs, at), own)))


def _overlay(top: Tiling, below: Tiling) -> Tiling:
    bounds = np.union1d(top.bounds, below.bounds)
    above = label_at(top, bounds[:-1])
    return simplify(
        Tiling(bounds, np.where(above == NOTHING, label_at(below, bounds[:-1]), above))
    )


def _training_steps(timeline: Timeline, shift: int) -> tuple[Int64s, Int64s]:
    steps = [step for step in timeline.steps if step.phase == "training"]
    return (
        np.array([step.start_ps + shift for step in steps], dtype=np.int64),
        np.array([step.end_ps + shift for step in steps], dtype=np.int64),
    )


def _with_wasted(tiling: Tiling, timeline: Timeline) -> Tiling:
    """From the first non-finite loss on, computing teaches the model nothing."""
    since = wasted_from_ps(timeline)
    if since is None:
        return tiling
    return relabel_inside(
        tiling,
        np.array([since]),
        tiling.bounds[-1:],
        codes_of_bucket("compute"),
        "numerics.nonfinite",
    )


def _untraced_ledger(timeline: Timeline) -> Ledger:
    """Event files alone: what the first epoch took longer than the later ones was one-time."""
    duration = timeline.window.duration_ps
    later = timeline.later_epochs_ps
    once = max(duration - int(np.median(later)), 0) if later else 0
    return Ledger(
        bounds_ps=np.array([0, once, duration], dtype=np.int64),
        cause=np.full(2, code("unknown.not_traced"), dtype=np.uint8),
        one_time=np.array([True, False]),
    )


def _ledger(tiling: Tiling) -> Ledger:
    bounds, labels = simplify(tiling)
    assert bounds[0] == 0 and (np.diff(bounds) >= 0).all(), "a ledger tiles its window"
    return Ledger(bounds, labels.astype(np.uint8), ONE_TIME[labels])


def _evidence(parts: Sequence[AlignedTrace]) -> Mapping[str, str]:
    """What the traces can and cannot show, so that silence is not read as zero."""
    traces = [part.trace for part in parts]
    allocations = sum(len(allocator_rows(trace)) for trace in traces)
    python = sum(len(rows_named(trace, lambda name: name.startswith("$"))) for trace in traces)
    views = [device_view(part.trace, 0, 1) for part in parts]
    seen = {
        "memory": f"{allocations} allocator events."
        if allocations
        else "No allocator events: memory waits could not be seen.",
        "python": f"{python} Python calls recorded."
        if python
        else "No Python tracer: time in Python has no names.",
    }
    return seen | {"device": view.sentence for view in views if view is not None}
