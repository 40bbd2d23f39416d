"""The steps of the first epoch: as traces show them, as a capture timed them, as they were logged.

A trace knows each step that it saw. The books of a capture have all of them; short ones share a
row. A capture without books times the first steps, every sixteenth after that and all long ones;
only the number of the others is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from stall_analyzer.align.logged_epoch import LoggedEpoch, batch_times, step_durations
from stall_analyzer.model.books import Books
from stall_analyzer.model.event_log import Capture, EventLog
from stall_analyzer.model.timeline import AlignedTrace, Step, TracedSteps, Window
from stall_analyzer.model.units import NS_PER_S, PS_PER_MS, PS_PER_NS, Int64s

# Durations are stored as float32: this is more than the rounding error of an hour.
ROUNDING_PS = PS_PER_MS


def find_steps(
    traces: Sequence[AlignedTrace],
    events: EventLog | None,
    window: Window,
    logged: LoggedEpoch | None,
) -> tuple[Step, ...]:
    """In order of time. Some steps may be missing: see `training_steps` of the timeline."""
    parts = [
        (a.steps, a.covered_ps[1], _first_number(a.session, events, logged))
        for a in traces
        if a.steps is not None
    ]
    sessions = [found for part in parts if (found := _traced(*part))]
    traced = sorted((step for found in sessions for step in found), key=_start)
    if all(first is None for _, _, first in parts):
        traced = [replace(step, index=index) for index, step in enumerate(traced)]
    if events is None or window.start_unix_ns is None:
        return tuple(traced)
    timed = _booked(events, window) or _timed(events, window, (logged and logged.first_step) or 0)
    if timed is not None:
        return tuple(sorted([*traced, *_outside(timed, sessions)], key=_start))
    walls = (batch_times(events) - window.start_unix_ns) * PS_PER_NS
    ends = [int(w) for w in walls[(walls > 0) & (walls <= window.duration_ps)]]
    return tuple(traced) if len(traced) >= len(ends) // 2 else _from_ends(ends)


def _start(step: Step) -> int:
    return step.start_ps


def _first_number(session: str, events: EventLog | None, logged: LoggedEpoch | None) -> int | None:
    """Which step of the epoch a session began with, if a capture says so."""
    capture = events.capture if events is not None else None
    if capture is None or logged is None or logged.first_step is None:
        return None
    opened = capture.opened(session.rpartition("/")[2])
    if opened is None or opened.first_step is None:
        return None
    return max(opened.first_step - logged.first_step, 0)


def _traced(steps: TracedSteps, until: int, first_number: int | None) -> list[Step]:
    """Each step lasts until the next one begins: what callbacks do after it belongs to it."""
    inside = steps.start_ps < until
    start, kind = steps.start_ps[inside], steps.training[inside]
    if len(start) == 0:
        return []
    ends = np.append(start[1:], until)
    # The last step of a kind ends with its own work: what follows is validation or epoch end.
    last = np.append(kind[1:] != kind[:-1], True)
    if steps.source != "iterator":
        ends = np.where(last, np.minimum(steps.end_ps[inside], ends), ends)
    return [
        Step(index, int(begin), int(end), "training" if trains else "validation", steps.source)
        for index, (begin, end, trains) in enumerate(
            zip(start, ends, kind, strict=True), start=first_number or 0
        )
    ]


def _booked(events: EventLog, window: Window) -> list[Step]:
    """Steps from the books, each beginning where the last one ended. Steps of a row share it
    evenly."""
    capture = events.capture
    books = capture.books if capture is not None else None
    if capture is None or books is None or window.start_unix_ns is None:
        return []
    begins = (books.begin_ns - window.start_unix_ns) * PS_PER_NS
    ends = (_last_steps_end_ns(capture, books) - window.start_unix_ns) * PS_PER_NS
    rows = (books.steps > 0) & (ends > 0) & (ends <= window.duration_ps)
    found: list[Step] = []
    for begin, end, count in zip(begins[rows], ends[rows], books.steps[rows], strict=True):
        bounds = np.linspace(max(begin, 0), end, count + 1).astype(np.int64)
        for start, stop in pairwise(bounds.tolist()):
            found.append(Step(len(found), start, stop, "training", "capture"))
    return found


def _last_steps_end_ns(capture: Capture, books: Books) -> Int64s:
    """For each row. In the last one, training may have stopped long after its last step."""
    ends_ns, looks = books.end_ns.copy(), capture.looks
    if looks and looks[-1].step >= books.steps.sum():
        alive_ns = looks[-1].ns - round(looks[-1].idle_s * NS_PER_S)
        ends_ns[-1] = min(max(alive_ns, books.begin_ns[-1] + 1), ends_ns[-1])
    return ends_ns


def _timed(events: EventLog, window: Window, first_number: int) -> list[Step] | None:
    """Steps whose end and length a capture recorded; None if there is no capture."""
    capture = events.capture
    durations = step_durations(capture) if capture is not None else None
    if capture is None or durations is None or window.start_unix_ns is None:
        return None
    series = capture.series["step_seconds"]
    ends = (series.wall_ns - window.start_unix_ns) * PS_PER_NS
    found: list[Step] = []
    before = 0
    for number, end, duration in zip(series.step, ends, durations, strict=True):
        if not 0 < end <= window.duration_ps:
            continue
        begin = int(max(end - duration, before))
        # A step begins where the previous one ended: any difference is rounding.
        begin = before if begin - before <= ROUNDING_PS else begin
        if end > begin:
            found.append(Step(int(number) - first_number, begin, int(end), "training", "capture"))
        before = max(before, int(end))
    return found


def _outside(steps: Sequence[Step], sessions: Sequence[Sequence[Step]]) -> list[Step]:
    """Steps that are entirely or mostly outside of all sessions: inside, the trace knows better."""
    found = []
    spans = sorted((session[0].start_ps, session[-1].end_ps) for session in sessions)
    begins = np.array([begin for begin, _ in spans], dtype=np.int64)
    for step in steps:
        start, end = step.start_ps, step.end_ps
        after = int(np.searchsorted(begins, start, side="right"))
        if after:
            start = max(start, spans[after - 1][1])
        if after < len(spans):
            end = min(end, spans[after][0])
        if 2 * (end - start) > step.end_ps - step.start_ps:
            found.append(replace(step, start_ps=start, end_ps=end))
    return found


def _from_ends(ends: Sequence[int]) -> tuple[Step, ...]:
    """From the times at which batches were logged; when the first one began is not known."""
    return tuple(
        Step(index, begin, end, "training", "events")
        for index, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True))
        if end > begin
    )
