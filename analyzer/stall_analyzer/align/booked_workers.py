"""Workers that train together, by their books: when all end a step, and which clocks are off.

Synchronous training ends each step on all workers at once. So steps with the same number are
meetings, and each worker arrived as long before the end as it waited for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stall_analyzer.align.host_clocks import STEPS_AGREE_PS, median_difference
from stall_analyzer.captures.capture_format import Account
from stall_analyzer.model.books import Books
from stall_analyzer.model.columns import median
from stall_analyzer.model.event_log import Capture, EventLog
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import HostClock, Meetings, Window
from stall_analyzer.model.units import PS_PER_NS, Int64s

OWN_CLOCK = HostClock("own clock", ahead_ps=0)


@dataclass(frozen=True)
class Worker:
    capture: Capture
    books: Books
    clock: HostClock = OWN_CLOCK

    @property
    def ends(self) -> tuple[Int64s, Int64s]:
        """How many steps were over, and when, for rows that end with a step."""
        rows = np.flatnonzero(self.books.steps)
        return np.cumsum(self.books.steps)[rows], self.books.end_ns[rows]


def booked_workers(events: EventLog | None) -> tuple[Worker, ...]:
    """The workers of one cluster that end their steps together, by the first one's clock."""
    captures = events.captures if events is not None else ()
    clustered = [
        Worker(capture, capture.books)
        for capture in captures
        if capture.books is not None and capture.environment.task is not None
        and capture.environment.task in capture.environment.training_tasks
        and capture.environment.cluster == captures[0].environment.cluster
    ]  # fmt: skip
    tasks = {worker.capture.environment.task for worker in clustered}
    if len(tasks) < 2 or len(tasks) < len(clustered):  # one was restarted
        return ()
    leader, *others = clustered
    placed = [_by_the_clock_of(leader, other) for other in others]
    together = (leader, *(worker for worker in placed if worker is not None))
    return _with_waits(together) if len(together) > 1 else ()


def with_workers(events: EventLog, workers: Sequence[Worker]) -> EventLog:
    """The log with the books of these workers on one clock."""
    books = {worker.capture.trace_name: worker.books for worker in workers}
    captures = (
        replace(capture, books=books.get(capture.trace_name, capture.books))
        for capture in events.captures
    )
    return replace(events, captures=tuple(captures))


def booked_meetings(workers: Sequence[Worker], window: Window) -> Meetings | None:
    """The meetings that ended inside the window, in window time."""
    if not workers or window.start_unix_ns is None:
        return None
    common = _common_steps(workers)
    ended = np.stack([_at(worker, common) for worker in workers], axis=1)
    waited = np.stack([_between(worker, common, Account.COLLECTIVE) for worker in workers], axis=1)
    ended_ps = (ended - window.start_unix_ns) * PS_PER_NS
    inside = (ended_ps.min(axis=1) > 0) & (ended_ps.min(axis=1) <= window.duration_ps)
    if not inside.any():
        return None
    hosts = tuple(worker.capture.trace_name for worker in workers)
    return Meetings(hosts, (ended_ps - waited * PS_PER_NS)[inside], ended_ps[inside])


def _by_the_clock_of(leader: Worker, worker: Worker) -> Worker | None:
    """None if they do not end their steps together: then they train separately."""
    my_number, my_end = worker.ends
    their_number, their_end = leader.ends
    _, mine, theirs = np.intersect1d(my_number, their_number, return_indices=True)
    found = median_difference((my_end[mine] - their_end[theirs]) * PS_PER_NS)
    # A loop may do something between the meeting and the point that it marks as the end of a step.
    step_ns = median(np.diff(their_end)) if len(their_end) > 1 else 0
    agree_ps = max(STEPS_AGREE_PS, int(step_ns) * PS_PER_NS)
    if found is None or found.error_ps > agree_ps:
        return None
    if worker.capture.environment.host == leader.capture.environment.host:
        return worker if abs(found.ps) <= agree_ps else None  # their clocks agree
    ahead_ns = found.ps // PS_PER_NS
    clock = HostClock("steps", found.shared, found.ps, found.error_ps)
    return replace(worker, books=_moved(worker.books, -ahead_ns), clock=clock)


def _moved(books: Books, by_ns: int) -> Books:
    items = (
        replace(item, begin_ns=item.begin_ns + by_ns, end_ns=item.end_ns + by_ns)
        for item in books.items
    )
    begin_ns, end_ns = books.begin_ns + by_ns, books.end_ns + by_ns
    return replace(books, begin_ns=begin_ns, end_ns=end_ns, items=tuple(items))


def _common_steps(workers: Sequence[Worker]) -> Int64s:
    common, _ = workers[0].ends
    for worker in workers[1:]:
        common = np.intersect1d(common, worker.ends[0])
    return common


def _at(worker: Worker, numbers: Int64s) -> Int64s:
    """When this many steps were over."""
    number, end_ns = worker.ends
    return end_ns[np.searchsorted(number, numbers)]


def _between(worker: Worker, numbers: Int64s, account: str) -> Int64s:
    """The time spent from the end of the previous one of these steps to the end of each."""
    until = np.cumsum(worker.books.spent(account))[_row_of(worker.books, numbers)]
    return np.diff(until, prepend=0)


def _row_of(books: Books, numbers: Int64s) -> Int64s:
    return np.searchsorted(np.cumsum(books.steps), numbers)


# ---------------------------------------------------------------- if no clock measured the wait


def _with_waits(workers: tuple[Worker, ...]) -> tuple[Worker, ...]:
    """If no clock measured the collectives (several replicas in a process, XLA), the call of the
    step includes the wait. All began and ended the step together: the one that spent the least time
    in the call came last, and the extra time of the others is what they waited."""
    if any(worker.books.spent(Account.COLLECTIVE).any() for worker in workers):
        return workers
    common = _common_steps(workers)
    spent = np.stack([_between(worker, common, Account.STEP) for worker in workers], axis=1)
    waited = spent - spent.min(axis=1, keepdims=True)
    return tuple(
        replace(worker, books=_with_wait(worker.books, common, spent[:, n], waited[:, n]))
        for n, worker in enumerate(workers)
    )


def _with_wait(books: Books, numbers: Int64s, spent: Int64s, waited: Int64s) -> Books:
    """Moves this much of the time in steps, up to each of these step numbers, to waiting."""
    last = _row_of(books, numbers)
    group = np.searchsorted(last, np.arange(len(books)))
    share = np.append(waited / np.maximum(spent, 1), 0.0)
    step = books.spent(Account.STEP)
    moved = np.floor(step * share[group]).astype(np.int64)
    changed = {Account.STEP: step - moved, Account.COLLECTIVE: moved}
    return replace(books, spent_ns={**books.spent_ns, **changed})
