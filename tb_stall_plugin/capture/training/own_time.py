"""What the capture takes of the training thread: counted always, shown where a profiler runs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from stall_analyzer.captures.capture_format import OWN_WORK
from tb_stall_plugin.capture.training.tf_profiler import ProfilerTrace, a_profiler_runs

P = ParamSpec("P")
T = TypeVar("T")


def shown(action: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """As an event of the trace, so that it is not taken for the program's own work."""
    with ProfilerTrace(OWN_WORK) if a_profiler_runs() else contextlib.nullcontext():
        return action(*arguments, **named)


class OwnTime:
    """Adds up. Two reads of a clock: a tenth of a microsecond."""

    def __init__(self) -> None:
        self.ns = 0
        self._began_ns = 0

    def __enter__(self) -> None:
        self._began_ns = time.perf_counter_ns()

    def __exit__(self, *error: object) -> None:
        self.ns += time.perf_counter_ns() - self._began_ns
