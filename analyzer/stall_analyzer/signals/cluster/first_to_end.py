"""Which member of a cluster ended first, so that the others could not continue."""

from __future__ import annotations

from collections.abc import Sequence

from stall_analyzer.captures.capture_records import Task
from stall_analyzer.model.cluster import EndedFirst, Member
from stall_analyzer.model.format import seconds
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.units import PS_PER_NS, PS_PER_S

# A capture writes every second, or every half minute to a URL.
SILENT_NS = 60_000_000_000
# A profiler that was merely stopped a little sooner proves nothing.
STOPPED_SOONER_PS = 2 * PS_PER_S
USUAL_STEPS = 2  # how many steps may still begin after the last sign of a host


def ended_first(timeline: Timeline, members: Sequence[Member]) -> EndedFirst | None:
    captured = [member for member in members if member.captured]
    return _by_captures(timeline, captured) or _by_traces(timeline)


def _by_captures(timeline: Timeline, captured: Sequence[Member]) -> EndedFirst | None:
    """The one that the others' errors point to or, without errors, the one whose records stop while
    theirs continue."""
    by_task = {member.task: member for member in captured if member.task is not None}
    blamed = {member.blames for member in captured if member.blames is not None}
    # Errors spread from one worker to the next: the first one blames no other.
    suspects = [t for t in blamed if t not in by_task or by_task[t].blames is None] or [
        member.task
        for member in captured
        if member.task is not None and not member.ended and _is_outlived(member, captured)
    ]
    if len(suspects) != 1:
        return None
    others = [member for member in captured if member.task != suspects[0]]
    return _told(timeline, suspects[0], by_task.get(suspects[0]), others) if others else None


def _is_outlived(member: Member, captured: Sequence[Member]) -> bool:
    others = [other for other in captured if other is not member]
    return bool(others) and all(other.last_ns > member.last_ns + SILENT_NS for other in others)


def _told(
    timeline: Timeline, task: Task, first: Member | None, others: Sequence[Member]
) -> EndedFirst:
    if first is not None:
        # It was still there while the others finished steps.
        at_ns = max([first.last_ns, *(o.last_step_ns for o in others if o.last_step_ns)])
    else:
        at_ns = min(other.first_ns for other in others)
    waited = [max(other.last_ns - at_ns, 0) for other in others]
    failed = [other for other in others if other.error]
    if first is None:
        how = "It left no record at all."
    elif first.ended:
        how = f'Its final record says "{first.ended}".'
    else:
        how = "It left no final record: it was killed, or its machine is gone."
    waited_ps = sum(waited) // len(waited) * PS_PER_NS
    later = seconds(waited_ps)
    if not failed:
        who = "other one" if len(others) == 1 else "others"
        words = f"The {who} kept writing records for {later}, but finished nothing."
    elif len(others) == 1:
        words = f"The other one failed with {failed[0].error} {later} later."
    else:
        every = "both" if len(others) == 2 else f"all {len(others)}"
        which = every if len(failed) == len(others) else f"{len(failed)}"
        words = f"Of the others, {which} failed with {failed[0].error}, {later} later on average."
    zero_ns = timeline.window.start_unix_ns
    return EndedFirst(
        name=first.name if first is not None else str(task),
        at_ps=(at_ns - zero_ns) * PS_PER_NS if zero_ns is not None else 0,
        at_unix_ns=at_ns,
        others_waited_ps=waited_ps,
        how=how,
        others=words,
    )


def _by_traces(timeline: Timeline) -> EndedFirst | None:
    """A host whose trace ends before those of the others, which then start no further step."""
    hosts = dict.fromkeys(a.host for a in timeline.traces)
    ends = {h: max(a.covered_ps[1] for a in timeline.traces if a.host == h) for h in hosts}
    first = min(ends, key=lambda host: ends[host], default="")
    others = [a.steps for a in timeline.traces if a.host != first and a.steps is not None]
    later = [end - ends[first] for host, end in ends.items() if host != first]
    if not others or timeline.meetings is None or min(later) < STOPPED_SOONER_PS:
        return None
    usual = max(steps.last_start_ps // max(steps.count, 1) for steps in others)
    if any(steps.last_start_ps > ends[first] + USUAL_STEPS * usual for steps in others):
        return None
    zero_ns = timeline.window.start_unix_ns
    waited_ps = sum(later) // len(later)
    who = "other one was" if len(later) == 1 else "others were"
    return EndedFirst(
        name=first,
        at_ps=ends[first],
        at_unix_ns=None if zero_ns is None else zero_ns + ends[first] // PS_PER_NS,
        others_waited_ps=waited_ps,
        how="Its trace ends there.",
        others=f"The {who} traced for another {seconds(waited_ps)}, but started no step.",
    )
