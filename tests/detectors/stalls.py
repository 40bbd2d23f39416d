"""Captures of a run that does not continue, and what is said about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stall_analyzer.align.align import align
from stall_analyzer.detectors.ending import stuck_or_dead
from stall_analyzer.model.event_log import EventLog
from stall_analyzer.model.findings import Finding, Verdict
from stall_analyzer.signals.ending.stall import Stall
from tests import captures as write
from tests.captures import GENERATOR, IN_THE_STEP, QUEUE, native, thread
from tests.detectors.training import diagnosed, signals_for

Json = dict[str, object]
STEPS = 37
LAST_STEP_S = 10.0
MAIN_WAITS = thread(*IN_THE_STEP, main=True)
STARVED = (MAIN_WAITS, thread(*QUEUE, *GENERATOR))
WAITING = (native("futex", count=40), native("futex", name="tf_data_private"))


def stall(
    *threads: Json | Callable[[int], Json],
    kernel: Sequence[Json] = WAITING,
    phase: str = "train_batch",
    cores: float = 0.004,
    seconds: int = 20,
    dumped: bool = True,
    steps: int = STEPS,
    children: Callable[[int], list[Json]] = lambda idle: [],
    tasks_left: Callable[[int], int | None] = lambda idle: None,
) -> list[bytes]:
    """A look each second after five seconds without a step; a dump in the middle. What changes with
    the time is a function of the seconds."""
    records = []
    for idle in range(5, seconds):
        at = LAST_STEP_S + idle
        kind, more = "beat", {}
        if dumped and idle == 12:
            kind = "dump"
            more = {"reason": "no_step", "limit_s": 11.5, "native": list(kernel)}
        records.append(
            write.record(
                kind, at, step=steps, idle_s=float(idle), phase=phase, cpu_s=3 + cores * idle,
                threads=[t(idle) if callable(t) else t for t in threads], children=children(idle),
                tasks_left=tasks_left(idle), **more,
            )
        )  # fmt: skip
    return records


def before(steps: int = STEPS, **start: Any) -> list[bytes]:
    begun = [write.mark("fit_begin", 0.5), write.mark("epoch_begin", 1.0)]
    each = (LAST_STEP_S - 1.0) / max(steps, 1)
    return [write.start(**start), *(begun if steps else []), write.steps(1.0, steps, each)]


def judged(log: EventLog) -> tuple[Stall | None, Finding | None, Verdict]:
    timeline = align([], log)
    signals = signals_for(timeline)
    return signals.stall, stuck_or_dead.check(signals), diagnosed(timeline).verdict


def state_of(log: EventLog) -> str | None:
    stall = judged(log)[0]
    return stall.state if stall is not None else None


def held(*frames: str, steps: int = 0) -> bytes:
    """What faulthandler left behind in a process in which no Python could run."""
    return write.record(
        "dump", LAST_STEP_S + 18, reason="no_step", step=steps, idle_s=18.0, phase="startup",
        cpu_s=None, threads=[thread(*frames, main=True)], native=[], interpreter_held=True,
    )  # fmt: skip
