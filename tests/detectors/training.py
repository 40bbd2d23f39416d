"""A made-up training run with something between its steps, as the detectors see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from stall_analyzer.attribute.attribute import attribute
from stall_analyzer.diagnose.diagnose import diagnose, signals_of
from stall_analyzer.model.causes import ONE_TIME, codes
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.findings import Finding, Report
from stall_analyzer.model.ledger import Ledger
from stall_analyzer.model.runs import Run
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.signals.signals import Signals
from tests.traces import TRAIN_OPS, call, event, ops, timeline_of, trainer
from tests.xspace import Event

STEP_MS = 10.0

Between = Callable[[int, float], Sequence[Event]]  # number of the step, when its pause begins


def nothing(number: int, at_ms: float) -> Sequence[Event]:
    return ()


def eager(op: str, start_ms: float, end_ms: float) -> Event:
    return event(f"EagerLocalExecute: {op}", start_ms, end_ms)


def training(
    folder: Path,
    *,
    steps: int = 20,
    pause_ms: float = 1.0,
    between: Between = nothing,
    names: Sequence[str] = TRAIN_OPS,
    dispatch_ms: float = 0.0,
    lines: Sequence[tuple[str, Sequence[Event]]] = (),
    planes: Sequence[bytes] = (),
    events: EventLog | None = None,
) -> Signals:
    """Steps of 10 ms with pauses; `between` says what the training thread does in each pause."""
    python: list[Event] = []
    work: list[Event] = []
    for number in range(steps):
        start = number * (STEP_MS + pause_ms)
        end = start + STEP_MS
        python += call(start, end, run=number + 1)
        python += between(number, end)
        work += ops(start + dispatch_ms, end, number + 1, *names)
    main = trainer(python, work, *lines)
    return signals_for(timeline_of(folder, main, *planes, events=events))


def signals_for(timeline: Timeline) -> Signals:
    return signals_of(timeline, attribute(timeline))


def with_cause(signals: Signals, cause: str, share: float) -> Signals:
    """The same run, which computes except for this share of the window, which goes to one cause."""
    window = signals.window_ps
    parts = codes("compute.step", cause)
    bounds = np.array([0, round(window * (1 - share)), window], dtype=np.int64)
    host = replace(signals.host, ledger=Ledger(bounds, parts.astype(np.uint8), ONE_TIME[parts]))
    return Signals(signals.timeline, (host,), host)


def diagnosed(timeline: Timeline) -> Report:
    return diagnose(Run(".", "", (), ()), timeline, attribute(timeline))


def found(finding: Finding | None, severity: str | None = None) -> Finding:
    """The finding, after a check that it is there and as urgent as expected."""
    assert finding is not None
    assert severity in (None, finding.severity)
    assert 0 <= finding.gain.low_ps <= finding.gain.high_ps
    assert finding.gain.high_ps <= finding.lost_ps or len(finding.blames) > 1
    return finding
