"""Warnings of TensorFlow, Keras and NCCL that explain time or learning."""

from __future__ import annotations

import re
from dataclasses import replace

from stall_analyzer.consoles.console_text import ConsoleText, clock_s
from stall_analyzer.model.console_log import ConsoleWarning, ShuffleFill, WarningKind

# Words that stand in exactly these warnings, as TensorFlow has had them since 2.0.
WARNINGS: tuple[tuple[WarningKind, tuple[str, ...]], ...] = (
    ("ptx", ("jit-compiled from PTX", "Jit-compiling kernels from PTX")),
    ("autotuning", ("Trying algorithm ",)),
    ("slow_compile", ("Very slow compile?",)),
    ("retracing", ("triggered tf.function retracing",)),
    ("large_allocation", ("% of free system memory",)),
    ("ran_out_of_data", ("Your input ran out of data",)),
    (
        "gpu_libraries",
        (
            "Cannot dlopen some GPU libraries",
            "Could not find cuda drivers on your machine",
            "CUDA_ERROR_NO_DEVICE",
            "no CUDA-capable device is detected",
        ),
    ),
    ("partial_cache", ("The calling iterator did not fully read the dataset being cached",)),
    ("no_gradients", ("Gradients do not exist for variables",)),
    ("nccl", ("NCCL WARN", "NCCL error", "failed at nccl_communicator.cc")),
)
TOOK = re.compile(r"The operation took (?:(\d+)h)?(?:(\d+)m)?([\d.]+)s")
MOST_COUNTED = 10_000
FILLING = re.compile(r"Filling up shuffle buffer \(this may take a while\): (\d+) of (\d+)")
FILLED = re.compile(r"[Ss]huffle buffer filled")
# tf.data says how far it is every ten seconds, the first time ten seconds after it began.
FILLING_EVERY_S = 10.0


def console_warnings(console: ConsoleText) -> dict[WarningKind, ConsoleWarning]:
    found: dict[WarningKind, ConsoleWarning] = {}
    for kind, hints in WARNINGS:
        places = sorted(at for hint in hints for at in console.find(hint))[:MOST_COUNTED]
        if places:
            found[kind] = ConsoleWarning(console.line(places[0]), len(places))
    if "slow_compile" in found:
        found["slow_compile"] = replace(found["slow_compile"], seconds=_operations_s(console))
    return found


def _operations_s(console: ConsoleText) -> float | None:
    """XLA says how long a slow operation took when it is over."""
    units = (3600.0, 60.0, 1.0)
    took = [
        sum(float(part) * unit for part, unit in zip(match.groups("0"), units, strict=True))
        for match in TOOK.finditer(console.text)
    ]
    return sum(took) if took else None


def shuffle_fill(console: ConsoleText) -> ShuffleFill | None:
    """The first one. Other buffers may be filled after it, or beside it."""
    first = FILLING.search(console.text)
    if first is None:
        return None
    filled = FILLED.search(console.text, first.end())
    until = filled.start() if filled else len(console.text)
    last = first
    for match in FILLING.finditer(console.text, first.end(), until):
        if match[2] != first[2] or int(match[1]) < int(last[1]):
            break  # another buffer, or the next epoch
        last = match
    begin_s, end_s = (_time_at(console, m.start()) for m in (first, filled or last))
    if begin_s is None or end_s is None or end_s < begin_s:
        return None
    return ShuffleFill(
        elements=int(first[2]) if filled else int(last[1]),
        size=int(first[2]),
        seconds=end_s - begin_s + FILLING_EVERY_S,
        is_filled=filled is not None,
        line=console.line(first.start()),
    )


def _time_at(console: ConsoleText, at: int) -> float | None:
    start, end = console.bounds(at)
    return clock_s(console.text[start:end])
