"""The driver compiles every kernel: TensorFlow was not built for this GPU.

What it finds
A GPU for which the TensorFlow build contains no machine code, because the GPU is newer than the
build.

Why it stalls
The driver compiles each kernel from PTX when it is first used. TensorFlow itself says that this may
take 30 minutes or longer. During all that time, training looks stuck.

How it is measured
TensorFlow's warning on the job's console, and how long the console was silent after it. With a
capture: the GPU's compute capability, compared with the architectures that TensorFlow was built
for.

Example
An H100 with TensorFlow 2.12: "TensorFlow was not built with CUDA kernel binaries compatible with
compute capability 9.0. CUDA kernels will be jit-compiled from PTX …"

What to do
Install a version of TensorFlow (or an NVIDIA container) that was built for the GPU. Until then,
keep the driver's cache between runs: set CUDA_CACHE_PATH to a folder that persists, and
CUDA_CACHE_MAXSIZE to 4294967296 (4 GB, in bytes).

Blind spots
No message says when compiling is finished, so the silence after the warning is an upper limit. Once
the driver's cache holds all the kernels, nothing is left to compile, but the warning still appears.
"""

from __future__ import annotations

from stall_analyzer.captures.capture_records import Environment
from stall_analyzer.detectors.console_words import quoted
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.units import PS_PER_S
from stall_analyzer.signals.signals import Signals

ID = "ST111"
BUCKET = "compile"

LONG_S = 60  # of silence: the training looked stuck
BINARY = pattern(r"sm_(\d+?)(\d)[af]?$")
CAPABILITY = pattern(r"compute capability (\d+\.\d+[a-z]?)")


def check(signals: Signals) -> Finding | None:
    warning = signals.console.warnings.get("ptx")
    capture = signals.capture
    known = _without_kernels(capture.environment) if capture is not None else ""
    if warning is None and not known:
        return None
    silent = (warning.seconds if warning is not None else None) or 0.0
    said = quoted(warning) if warning is not None else ""
    card = CAPABILITY.search(said)
    which = card[1] if card else known
    after = (
        f" The console was silent for {seconds(round(silent * PS_PER_S))} after it."
        if silent >= LONG_S
        else ""
    )
    built = "" if said else f"This TensorFlow build has no kernels for compute capability {known}."
    return Finding(
        severity="act" if silent >= LONG_S else "consider",
        title="TensorFlow was not built for this GPU: the driver compiles every kernel first"
        + (f" (compute capability {which})" if which else ""),
        explanation=(
            f"{said}{built}{after} Compiling happens once per machine, unless the driver's cache "
            "is too small or is lost, as in a new container."
        ).strip(),
        change=Change(
            "Install a version of TensorFlow that was built for this GPU, or keep the driver's "
            "cache.",
            "",
            "export CUDA_CACHE_PATH=/a/folder/that/stays\nexport CUDA_CACHE_MAXSIZE=4294967296",
        ),
        confidence=0.7,
    )


def _without_kernels(environment: Environment) -> str:
    """The first GPU that the build has no machine code for. Code runs on cards of the same major
    version that are at least as new."""
    if not environment.gpus or not environment.built_for:
        return ""
    built = [
        (int(found[1]), int(found[2]))
        for name in environment.built_for
        if (found := BINARY.match(name))
    ]
    for gpu in environment.gpus:
        major, _, minor = gpu.partition(".")
        if not any(str(first) == major and last <= int(minor or 0) for first, last in built):
            return gpu
    return ""
