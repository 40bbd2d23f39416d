"""What the device's driver was asked for on the host, where its profiler recorded the calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from stall_analyzer.model.timeline import AlignedTrace

Purpose: TypeAlias = Literal["starting", "loading", "growing"]

# How calls of CUDA's and AMD's drivers begin. Loading a module compiles its PTX where necessary.
CALLS: tuple[tuple[Purpose, tuple[str, ...]], ...] = (
    ("starting", ("cuInit", "cuDevicePrimaryCtxRetain", "cuCtxCreate", "hipInit")),
    ("loading", ("cuModuleLoad", "cuLibraryLoad", "cuLinkComplete", "hipModuleLoad")),
    ("growing", ("cuMemAlloc", "cudaMalloc", "cuMemCreate", "hipMalloc")),
)
ANY_CALL = tuple(call for _, calls in CALLS for call in calls)
ON_THE_HOST = ("Host", "Managed")  # memory of another kind


def driver_calls(traces: Sequence[AlignedTrace]) -> dict[Purpose, int]:
    """Picoseconds by purpose, over everything that was traced."""
    found: dict[Purpose, int] = {}
    for trace in (aligned.trace for aligned in traces):
        for name, ps in zip(trace.names, trace.totals.self_ps.tolist(), strict=True):
            purpose = _purpose(name)
            if purpose is not None:
                found[purpose] = found.get(purpose, 0) + ps
    return found


def _purpose(name: str) -> Purpose | None:
    if not name.startswith(ANY_CALL) or any(word in name for word in ON_THE_HOST):
        return None
    return next((purpose for purpose, calls in CALLS if name.startswith(calls)), None)
