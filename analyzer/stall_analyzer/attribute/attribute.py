"""From the training thread, the executors and the devices to one ledger per host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stall_analyzer.attribute.allocator_waits import allocator_regions
from stall_analyzer.attribute.booked_time import (
    agreement,
    capture_with_books,
    with_books,
    without_overlap,
)
from stall_analyzer.attribute.contention import with_contention
from stall_analyzer.attribute.device_work import DeviceView, device_view
from stall_analyzer.attribute.evidence import what_could_be_seen
from stall_analyzer.attribute.executor import executor_work, run_tiling
from stall_analyzer.attribute.kernel_code import with_kernel_code
from stall_analyzer.attribute.logging_cost import with_logging
from stall_analyzer.attribute.one_time import ledger_with_one_time
from stall_analyzer.attribute.profiler_cost import with_capture, with_profiler_stop
from stall_analyzer.attribute.refine import (
    relabel,
    relabel_inside,
    with_cache_fill,
    with_first_wait,
    with_side_work,
    with_skipped_updates,
    with_warm_up,
)
from stall_analyzer.attribute.thread import FOLLOW, thread_tiling
from stall_analyzer.attribute.tracing_cost import with_tracing
from stall_analyzer.attribute.untrained import untrained_tiling
from stall_analyzer.attribute.wasted_steps import skipped_spans_ps, wasted_from_ps
from stall_analyzer.attribute.xla import xla_regions
from stall_analyzer.files.guard import note_of
from stall_analyzer.model.causes import code, codes, codes_of_bucket
from stall_analyzer.model.columns import median
from stall_analyzer.model.intervals import NOTHING, Tiling, among, overlay
from stall_analyzer.model.ledger import HostLedger, Ledger
from stall_analyzer.model.notes import Note
from stall_analyzer.model.timeline import AlignedTrace, Timeline, TrainingThread, starts_and_ends
from stall_analyzer.model.trace import Trace
from stall_analyzer.model.trace_rows import rows_beginning, rows_of_line
from stall_analyzer.model.units import Int64s

CLOCKS_COUNT = (
    "This is a large difference. The clocks' figures are used, because the clocks time the calls "
    "themselves."
)


def attribute(timeline: Timeline) -> tuple[HostLedger, ...]:
    """One ledger per host; without any trace, one that says so."""
    captures = timeline.events.captures if timeline.events is not None else ()
    hosts = dict.fromkeys(aligned.host for aligned in timeline.traces)
    hosts |= dict.fromkeys(capture.trace_name for capture in captures if capture.books)
    if not hosts:
        return (HostLedger("", _untraced_ledger(timeline), 0, None, {}),)
    return tuple(
        _readable_ledger(host, [a for a in timeline.traces if a.host == host], timeline)
        for host in hosts
    )


def _readable_ledger(host: str, parts: Sequence[AlignedTrace], timeline: Timeline) -> HostLedger:
    try:
        return _host_ledger(host, parts, timeline)
    except Exception as error:  # it was readable once; one bad host must not hide the others
        notes = (note_of(f"The recorded times of {host}", error),)
        return HostLedger(host, _untraced_ledger(timeline), 0, None, {}, notes)


def _host_ledger(host: str, parts: Sequence[AlignedTrace], timeline: Timeline) -> HostLedger:
    """Sessions of one host show different parts of the window: put them on top of each other."""
    duration = timeline.window.duration_ps
    tiling = Tiling(np.array([0, duration]), np.array([NOTHING]))
    for part in parts:
        begin, end = part.covered_ps
        if begin < end:
            traced = _traced(part, timeline, begin - part.shift_ps, end - part.shift_ps)
            tiling = overlay(tiling, Tiling(traced.bounds + part.shift_ps, traced.labels))
    capture, clocks = capture_with_books(timeline.events, host), {}
    notes = [note for part in parts for note in part.trace.notes]
    books = capture.books if capture is not None else None
    if books is not None and duration:  # a run may be read just after its epoch has begun
        books = without_overlap(tiling, books, timeline.window)
        clocks["clocks"], differ = agreement(tiling, books, timeline.window)
        if differ:
            notes.append(Note("warning", f"{clocks['clocks']} {CLOCKS_COUNT}"))
        tiling = with_books(tiling, books, timeline.window)
    tiling = relabel(tiling, tiling.labels == NOTHING, "unknown.not_traced")
    for part in parts:
        tiling = with_profiler_stop(tiling, part, timeline)
    tiling = _with_wasted(tiling, timeline)
    lengths = np.diff(tiling.bounds)
    untraced = lengths[tiling.labels == code("unknown.not_traced")].sum()
    waited = int(lengths[among(tiling.labels, codes_of_bucket("input"))].sum())
    sampled = capture is not None and capture.stacks is not None
    threads = [p.trace.lines[p.training.line].name for p in parts if p.training]
    return HostLedger(
        host=host,
        ledger=_ledger(tiling, parts, timeline),
        covered_ps=duration - int(untraced),
        training_thread=threads[0] if threads else None,
        evidence={**clocks, **what_could_be_seen(parts, waited, sampled)},
        notes=tuple(notes),
    )


def _traced(aligned: AlignedTrace, timeline: Timeline, begin: int, end: int) -> Tiling:
    """Causes over what the trace covers, in trace time."""
    trace, training = aligned.trace, aligned.training
    devices = device_view(trace, begin, end)
    if training is None:
        tiling = untrained_tiling(trace, begin, end)
    else:
        thread = thread_tiling(trace, training, aligned.eager, begin, end)
        thread = _with_open_ends(thread, aligned, training, timeline.window.duration_ps)
        own, others = executor_work(trace, training)
        regions = (*xla_regions(trace), *allocator_regions(trace, training))
        outside, between = _idle_causes(trace, devices)
        runs = run_tiling(own, regions, outside, between, begin, end)
        tiling = overlay(thread, runs, hole=FOLLOW)
        tiling = with_warm_up(tiling, trace, training)
        tiling = with_side_work(tiling, training)
        tiling = with_skipped_updates(tiling, training)
        steps = _training_steps(timeline, aligned)
        # Otherwise the first step in the trace is not the first step.
        if aligned.covered_ps[0] == 0:
            tiling = with_first_wait(tiling, trace, *steps)
        tiling = with_cache_fill(tiling, trace)
        if devices is None or not devices.used:
            tiling = with_contention(tiling, trace, own, others, steps)
            tiling = with_tracing(tiling, trace, training)
        tiling = with_logging(tiling, aligned, training, timeline)
        tiling = with_capture(tiling, trace, training)
    if devices is None or not devices.traced:
        return tiling
    # With a device at work, the executors on the host only launch kernels.
    launching = among(tiling.labels, codes_of_bucket("compute"))
    tiling = overlay(devices.tiling, relabel(tiling, launching, "host.dispatch"))
    return tiling if training is None else with_kernel_code(tiling, training)


def _with_open_ends(
    thread: Tiling, aligned: AlignedTrace, training: TrainingThread, duration: int
) -> Tiling:
    """Events that began before profiling, or had not ended when it did, are not in the trace. So if
    it begins or ends inside the epoch, the absence of events there does not mean Python."""
    span = rows_of_line(aligned.trace, training.line)
    events, (begin, end) = aligned.trace.events, thread.bounds[[0, -1]]
    first = events.start_ps[span].min(initial=end) if aligned.covered_ps[0] > 0 else begin
    last = events.end_ps[span].max(initial=begin) if aligned.covered_ps[1] < duration else end
    start, stop = np.array([begin, last]), np.array([first, end])
    return relabel_inside(thread, start, stop, codes("host.python"), "unknown.no_evidence")


def _idle_causes(trace: Trace, devices: DeviceView | None) -> tuple[int, int]:
    """The causes of the time in which a graph runs but none of its ops does: before the first and
    after the last op, and between ops."""
    nothing = code("unknown.no_evidence")
    if not len(rows_beginning(trace, "ExecutorState::")):
        return nothing, nothing
    untraced = devices is not None and devices.used and not devices.traced
    return code("host.dispatch"), nothing if untraced else code("compute.runtime")


def _training_steps(timeline: Timeline, aligned: AlignedTrace) -> tuple[Int64s, Int64s]:
    """Those that the trace saw, in its own time."""
    begin, end = aligned.covered_ps
    steps = [s for s in timeline.steps if s.phase == "training" and begin <= s.start_ps < end]
    starts, ends = starts_and_ends(steps)
    return starts - aligned.shift_ps, ends - aligned.shift_ps


def _with_wasted(tiling: Tiling, timeline: Timeline) -> Tiling:
    """Computing is wasted if updates are skipped, and after the first loss that is not finite."""
    compute = codes_of_bucket("compute")
    skipped = skipped_spans_ps(timeline)
    tiling = relabel_inside(tiling, *skipped, compute, "numerics.skipped_update")
    since = wasted_from_ps(timeline)
    if since is None:
        return tiling
    start, end = np.array([since]), tiling.bounds[-1:]
    return relabel_inside(tiling, start, end, compute, "numerics.nonfinite")


def _untraced_ledger(timeline: Timeline) -> Ledger:
    """With event files alone: the extra time of the first epoch was one-time."""
    duration = timeline.window.duration_ps
    later = timeline.later_epochs_ps
    once = max(duration - int(median(later)), 0) if later else 0
    return Ledger(
        bounds_ps=np.array([0, once, duration], dtype=np.int64),
        cause=np.full(2, code("unknown.not_traced"), dtype=np.uint8),
        one_time=np.array([True, False]),
    )


def _ledger(tiling: Tiling, parts: Sequence[AlignedTrace], timeline: Timeline) -> Ledger:
    ledger = ledger_with_one_time(tiling, parts, timeline)
    bounds = ledger.bounds_ps
    assert bounds[0] == 0 and (np.diff(bounds) >= 0).all(), "a ledger tiles its window"
    return ledger
