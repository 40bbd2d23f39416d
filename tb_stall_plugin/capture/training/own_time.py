"""What the capture does on the training thread, shown where a profiler runs."""

from __future__ import annotations

import contextlib
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
