"""Which collectives of different hosts are one meeting, and what happens when several overlap."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stall_analyzer.align.collectives import Collectives, collectives_of, meeting_table, meetings_of
from stall_analyzer.model.timeline import Meetings
from stall_analyzer.model.units import NEVER, PS_PER_MS
from stall_analyzer.signals.cluster.gatherings import Gatherings, gatherings_of
from tests.clusters import PUNCTUAL, signals_for, steadily
from tests.traces import event, host, trace_of
from tests.xspace import Event


def met(start_ms: float, end_ms: float, instance: int, name: str = "CollectiveReduceV2") -> Event:
    return event(name, start_ms, end_ms, group_key=1, instance_key=instance)


def read(folder: Path, *lines: list[Event]) -> Collectives:
    return collectives_of(
        trace_of(folder, host(*((f"collective_ops/{i}", line) for i, line in enumerate(lines))))
    )


def milliseconds(collectives: Collectives) -> list[tuple[float, float]]:
    columns = zip(collectives.arrived_ps, collectives.ended_ps, strict=True)
    return [(int(a) / PS_PER_MS, int(e) / PS_PER_MS) for a, e in columns]


def test_replicas_of_one_host_come_when_the_last_of_them_does(tmp_path: Path) -> None:
    found = read(tmp_path, [met(0, 10, 1), met(20, 30, 2)], [met(4, 10, 1), met(21, 30, 2)])
    assert milliseconds(found) == [(4, 10), (21, 30)]


def test_the_rounds_of_a_loop_in_a_graph_are_separate_meetings(tmp_path: Path) -> None:
    whole = read(tmp_path, [met(0, 10, 1), met(20, 30, 1), met(40, 50, 1)])
    assert [list(key) for key in whole.key] == [[1, 1, 0, 3], [1, 1, 1, 3], [1, 1, 2, 3]]
    assert len(meeting_table([whole, whole]).arrived_ps) == 3
    # If one trace shows only a part of the loop, rounds cannot be matched.
    part = read(tmp_path, [met(0, 10, 1), met(20, 30, 1)])
    assert len(meeting_table([whole, part]).arrived_ps) == 0


def test_whoever_sends_a_broadcast_waits_for_nobody(tmp_path: Path) -> None:
    found = read(tmp_path, [met(0, 10, 1, "CollectiveBcastSendV2"), met(20, 30, 2)])
    assert len(found.key) == 1


def test_a_meeting_needs_two_hosts_and_lies_in_the_window(tmp_path: Path) -> None:
    one = read(tmp_path, [met(0, 10, 1), met(20, 30, 2), met(90, 95, 3)])
    other = read(tmp_path, [met(20, 30, 2), met(91, 95, 3), met(99, 100, 4)])
    found = meetings_of([one, other], ["a", "b"], [0, 0], window_ps=50 * PS_PER_MS)
    assert found is not None
    assert found.arrived_ps.tolist() == [[20 * PS_PER_MS, 20 * PS_PER_MS]]
    assert meetings_of([one, other], ["a", "a"], [0, 0], window_ps=50 * PS_PER_MS) is None


def gathered(folder: Path, meetings: Meetings) -> Gatherings:
    job = {name: steadily(PUNCTUAL) for name in meetings.hosts}
    return gatherings_of(meetings, signals_for(folder, job).hosts)


def test_waiting_for_several_collectives_at_once_is_waiting_once(tmp_path: Path) -> None:
    """Two all-reduces of one step, both of which wait for b."""
    ms = PS_PER_MS
    meetings = Meetings(
        ("a", "b"),
        np.array([[10 * ms, 40 * ms], [12 * ms, 41 * ms], [60 * ms, 61 * ms]]),
        np.array([[45 * ms, 45 * ms], [46 * ms, 46 * ms], [65 * ms, 65 * ms]]),
    )
    found = gathered(tmp_path, meetings)
    assert len(found) == 2
    assert found.cost_ps.tolist() == [31 * ms, ms]  # from 10 to 41 ms, not twice 30
    assert [found.hosts[i] for i in found.last] == ["b", "b"]


def test_a_host_that_took_no_part_neither_waits_nor_counts(tmp_path: Path) -> None:
    ms = PS_PER_MS
    meetings = Meetings(
        ("a", "b", "c"),
        np.array([[10 * ms, 40 * ms, NEVER], [60 * ms, 50 * ms, 50 * ms]]),
        np.array([[45 * ms, 45 * ms, NEVER], [65 * ms, 65 * ms, 65 * ms]]),
    )
    found = gathered(tmp_path, meetings)
    assert found.cost_ps.tolist() == [30 * ms, 10 * ms]
    assert found.waited_ps[0].tolist() == [30 * ms, 0, NEVER]
