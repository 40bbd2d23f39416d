"""The members of a cluster: who should be there, who was heard from and until when.

Captures know best: each names its task and the whole cluster. Traces show how many hosts their
collectives need; and workers are numbered, so a missing number is a missing worker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from stall_analyzer.align.logged_epoch import STEP_SECONDS
from stall_analyzer.captures.capture_format import MarkName, StopReason
from stall_analyzer.captures.capture_records import Task
from stall_analyzer.model.cluster import Cluster, Member
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.kinds import SizeSource
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.timeline import AlignedTrace, Timeline
from stall_analyzer.model.units import PS_PER_NS
from stall_analyzer.signals.cluster.cluster_settings import settings_faults
from stall_analyzer.signals.cluster.first_to_end import ended_first
from stall_analyzer.signals.ending.process_end import ending_of

# `<host>-worker-1.xplane.pb`: what a capture calls a worker's trace, and how many pods are named.
_NUMBERED = pattern(r"(?P<stem>.*\b)(?P<type>chief|master|worker)-(?P<index>\d+)$")
# TensorFlow's errors name the peer that they come from.
_PEER = pattern(r"/job:(?P<type>\w+)/(?:replica:\d+/)?task:(?P<index>\d+)")


def cluster_of(timeline: Timeline) -> Cluster:
    captures = timeline.events.captures if timeline.events is not None else ()
    members = _members(timeline, captures)
    size, source, missing = _expected(timeline, captures, members)
    if max(size, len(members)) < 2:
        return Cluster()
    steps = _steps(timeline, members)
    cluster = Cluster(
        size=size,
        size_source=source,
        members=tuple(m if m.captured else replace(m, steps=steps.get(m.name)) for m in members),
        missing=missing,
        unreadable=timeline.unread_hosts,
        steps=steps,
        faults=settings_faults(captures),
        still_runs=_still_runs(timeline, captures),
    )
    if cluster.waits_for_the_missing:
        return cluster
    return replace(cluster, ended_first=ended_first(timeline, members))


def _still_runs(timeline: Timeline, captures: Sequence[Capture]) -> bool:
    read_ns = timeline.events.read_ns if timeline.events is not None else None
    return any(ending_of(capture, read_ns) is None for capture in captures)


def _members(timeline: Timeline, captures: Sequence[Capture]) -> tuple[Member, ...]:
    traced = {aligned.host for aligned in timeline.traces}
    ahead_ns = {
        a.host: a.clock.ahead_ps // PS_PER_NS
        for a in timeline.traces
        if a.clock.ahead_ps is not None
    }
    captured = [_captured_member(capture, timeline, ahead_ns) for capture in captures]
    names = {member.name for member in captured}
    only_traced = [
        Member(host, _task_of(host), traced=host in traced)
        for host in dict.fromkeys([*(a.host for a in timeline.traces), *timeline.unread_hosts])
        if host not in names
    ]
    return tuple(sorted((*captured, *only_traced), key=_by_task))


def _by_task(member: Member) -> tuple[str, int, str]:
    task = member.task or Task("", 0)
    return task.type, task.index, member.name


def _captured_member(capture: Capture, timeline: Timeline, ahead_ns: Mapping[str, int]) -> Member:
    traces = [a for a in timeline.traces if a.host == capture.trace_name]
    zero_ns = timeline.window.start_unix_ns
    traced_ns = [] if zero_ns is None else [zero_ns + a.covered_ps[1] // PS_PER_NS for a in traces]
    traced = [a.steps.count for a in traces if a.steps is not None]
    errors = [dump for dump in capture.dumps if dump.reason == StopReason.EXCEPTION]
    steps = capture.series.get(STEP_SECONDS)
    timed = [int(steps.step[-1]) + 1] if steps is not None and len(steps) else []
    ahead = ahead_ns.get(capture.trace_name, 0)
    # A failure is a sign of life as well, but not a step: the first look at that step counts.
    stood = [look.sign_ns for look in capture.looks if look.step == capture.looks[-1].step]
    return Member(
        name=capture.trace_name,
        task=capture.environment.task or _task_of(capture.trace_name),
        traced=bool(traces),
        captured=True,
        first_ns=capture.first_ns - ahead,
        last_ns=max([capture.last_ns - ahead, *traced_ns]),
        ended=capture.end.reason if capture.end is not None else "",
        error=errors[-1].error.type if errors else "",
        blames=_peer_in(errors[-1].error.text if errors else "", capture.environment.task),
        steps=max([0, *timed, *traced, *(look.step for look in capture.looks)]),
        last_step_ns=min(stood) - ahead if stood else None,
        epoch_steps=None if errors else _epoch_steps(capture),
    )


def _epoch_steps(capture: Capture) -> int | None:
    marks = {mark.what: mark.step for mark in reversed(capture.first_fit)}  # the first of a kind
    begin, end = marks.get(MarkName.EPOCH_BEGIN), marks.get(MarkName.EPOCH_END)
    return end - begin if begin is not None and end is not None else None


def _peer_in(error_text: str, own: Task | None) -> Task | None:
    """The first other task that an error names."""
    named = (Task(m["type"], int(m["index"])) for m in _PEER.finditer(error_text))
    return next((task for task in named if task != own), None)


def _task_of(name: str) -> Task | None:
    match = _NUMBERED.search(name)
    return Task(match["type"], int(match["index"])) if match else None


def _expected(
    timeline: Timeline, captures: Sequence[Capture], members: Sequence[Member]
) -> tuple[int, SizeSource, tuple[str, ...]]:
    """How many should train, what says so, and which of them left nothing."""
    heard = {member.task for member in members}
    configured = max(
        (capture.environment.training_tasks for capture in captures), key=len, default=()
    )
    if configured:
        missing = tuple(str(task) for task in configured if task not in heard)
        return len(configured), "TF_CONFIG", missing
    workers = {task.index for task in heard if task is not None and task.type == "worker"}
    holes = tuple(f"worker {i}" for i in range(max(workers, default=0)) if i not in workers)
    needed = max((a.cluster_hosts or 0 for a in timeline.traces), default=0)
    if needed > len(members):
        unnamed = needed - len(members) - len(holes)
        more = (f"{unnamed} more" if holes else f"{unnamed} of {needed} hosts",)
        return needed, "the collectives", (*holes, *(more if unnamed > 0 else ()))
    if holes and len(workers) == len(members):
        return max(workers) + 1, "the worker numbering", holes
    return len(members), "the files", ()


# ---------------------------------------------------------------- how much each one did

# A trace that misses more of the window may have missed steps as well.
WHOLE_SHARE = 0.95


def _steps(timeline: Timeline, members: Sequence[Member]) -> Mapping[str, int]:
    """Steps of the first epoch, for hosts whose steps are all known."""
    finished = {m.name: m.epoch_steps for m in members if m.epoch_steps is not None}
    if finished:
        return finished
    whole: dict[str, int] = {}
    for aligned in timeline.traces:
        if _covers(aligned, timeline.window.duration_ps) and aligned.steps is not None:
            whole[aligned.host] = max(whole.get(aligned.host, 0), aligned.steps.count)
    return {host: count for host, count in whole.items() if count}


def _covers(aligned: AlignedTrace, window_ps: int) -> bool:
    begin, end = aligned.covered_ps
    return end - begin >= WHOLE_SHARE * window_ps
