"""Shows in a profile what the capture does on the training thread."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from stall_analyzer.captures.capture_format import OWN_WORK
from tb_stall_plugin.capture.training.tf_profiler import ProfilerTrace, a_profiler_runs

P = ParamSpec("P")
T = TypeVar("T")


def shown(action: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Runs the action as an event of the trace, so that it does not count as the program's work."""
    with ProfilerTrace(OWN_WORK) if a_profiler_runs() else contextlib.nullcontext():
        return action(*arguments, **named)
