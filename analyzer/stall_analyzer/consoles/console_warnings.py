"""Warnings of TensorFlow, Keras and NCCL that explain time or learning."""

from __future__ import annotations

import re
from dataclasses import replace

from stall_analyzer.consoles.console_text import ConsoleText, clock_s
from stall_analyzer.model.console_log import ConsoleWarning, ShuffleFill, WarningKind

# Words that are in exactly these warnings, in TensorFlow since 2.0.
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
    (
        "nccl",
        (
            "NCCL WARN", "NCCL error", "failed at nccl_communicator.cc", "Error invoking NCCL",
            "NCCL operation ncclGroupEnd() failed",
        ),
    ),
    ("gpu_device", ("Created device /job", "Created TensorFlow device (/")),
    ("memory_growth", ("TF_FORCE_GPU_ALLOW_GROWTH environment variable is set",)),
    ("nccl_start", ("Init timings - ",)),
    (
        "cuda_failure",
        (
            "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "CUDA_ERROR_NO_BINARY_FOR_GPU",
            "no kernel image is available", "CUDA_ERROR_INVALID_PTX", "CUDA_ERROR_LAUNCH_TIMEOUT",
            "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ECC_UNCORRECTABLE",
            "CUDNN_STATUS_NOT_INITIALIZED", "CUDNN_STATUS_INTERNAL_ERROR",
        ),
    ),
)  # fmt: skip
TOOK = re.compile(r"The operation took (?:(\d+)h)?(?:(\d+)m)?([\d.]+)s")
NCCL_TOTAL = re.compile(r"Init timings - .*?total (\d+(?:\.\d+)?)")
PTX = "compiled from PTX"
DEVICE = ("Created device /job", "Created TensorFlow device (/")
SOON_LINES = 2_000  # of a console are searched for a time
MOST_COUNTED = 10_000
FILLING = re.compile(r"Filling up shuffle buffer \(this may take a while\): (\d+) of (\d+)")
FILLED = re.compile(r"[Ss]huffle buffer filled")
# tf.data reports its progress every ten seconds, first ten seconds after it began.
FILLING_EVERY_S = 10.0


def console_warnings(console: ConsoleText) -> dict[WarningKind, ConsoleWarning]:
    found: dict[WarningKind, ConsoleWarning] = {}
    for kind, hints in WARNINGS:
        places = sorted(at for hint in hints for at in console.find(hint))[:MOST_COUNTED]
        if places:
            found[kind] = ConsoleWarning(console.line(places[0]), len(places))
    if "slow_compile" in found:
        found["slow_compile"] = replace(found["slow_compile"], seconds=_operations_s(console))
    if "ptx" in found:
        found["ptx"] = replace(found["ptx"], seconds=_silence_after_s(console, PTX))
    if "gpu_device" in found:
        found["gpu_device"] = replace(found["gpu_device"], seconds=_since_first_s(console))
    if "nccl_start" in found:
        total = [float(match[1]) for match in NCCL_TOTAL.finditer(console.text)]
        found["nccl_start"] = replace(found["nccl_start"], seconds=max(total, default=None))
    return found


def _silence_after_s(console: ConsoleText, words: str) -> float | None:
    """How long the console was silent after the last line with these words."""
    *_, last = console.find(words)
    _, end = console.bounds(last)
    begin_s = _time_at(console, last)
    later = (clock_s(line) for line in console.text[end:].splitlines()[:SOON_LINES])
    next_s = next((time for time in later if time is not None), None)
    if begin_s is None or next_s is None or next_s < begin_s:
        return None
    return next_s - begin_s


def _since_first_s(console: ConsoleText) -> float | None:
    """From the first line with a time to the last line about a device created at the start."""
    times = [clock_s(line) for line in console.text.splitlines()[:SOON_LINES]]
    first = next((time for time in times if time is not None), None)
    ready = [_time_at(console, at) for hint in DEVICE for at in list(console.find(hint))[:64]]
    known = [time for time in ready if time is not None]
    return known[0] - first if known and first is not None and known[0] >= first else None


def _operations_s(console: ConsoleText) -> float | None:
    """When a slow operation is over, XLA says how long it took."""
    units = (3600.0, 60.0, 1.0)
    took = [
        sum(float(part) * unit for part, unit in zip(match.groups("0"), units, strict=True))
        for match in TOOK.finditer(console.text)
    ]
    return sum(took) if took else None


def shuffle_fill(console: ConsoleText) -> ShuffleFill | None:
    """The first fill. Other buffers may be filled after it, or at the same time."""
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
