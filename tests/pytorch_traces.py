"""Traces as PyTorch's profiler (Kineto) writes them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

HEADER = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "NVIDIA A100"}],
    "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1},
}


def event(
    cat: str, name: str, start_ms: float, end_ms: float, pid: object = 100
) -> dict[str, object]:
    times = {"ts": 1e12 + start_ms * 1000, "dur": (end_ms - start_ms) * 1000}
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": pid, **times}


def step(number: int, start_ms: float, loader_ms: float, end_ms: float) -> list[dict[str, object]]:
    """Waits for the loader, then runs ops, and their kernels until the step ends."""
    ready = start_ms + loader_ms
    loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    name = f"ProfilerStep#{number}"
    return [
        event("user_annotation", name, start_ms, end_ms),
        event("gpu_user_annotation", name, ready, end_ms, pid=0),
        event("user_annotation", loader, start_ms, ready),
        event("cpu_op", "aten::conv2d", ready, end_ms),
        event("kernel", "implicit_gemm", ready, end_ms, pid=0),
    ]


def write(path: Path, *events: dict[str, object], header: dict[str, object] | None = None) -> Path:
    """Adds what Kineto adds: names, instants, and spans whose ids are strings."""
    others: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": "Spans", "args": {"name": "Spans"}},
        event("Trace", "PyTorch Profiler (0)", -5, 500, pid="Spans"),
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 1e12},
    ]
    text = json.dumps({**(HEADER if header is None else header), "traceEvents": [*events, *others]})
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path
