"""The first run on a device waits for its kernels to be loaded, compiled from PTX, or autotuned.

What it finds
Extra time that a graph's first run on a GPU takes and its later runs do not.

Why it stalls
CUDA loads cuDNN, cuBLAS and the kernels when they are first used. The driver compiles the kernels
that the TensorFlow build does not contain for this card. cuDNN and XLA try several ways to compute
a convolution or a matrix product, and keep the fastest.

How it is measured
Launch and compute time in the first run of each graph, minus the median of its later runs. The
device must have been traced.

Example
The first step took 14.2 s longer than the others: cuDNN tried its algorithms for 53 convolutions.

What to do
This happens once for each process and shape, so use few different shapes (drop_remainder=True,
sequences padded to a few lengths). TF_CUDNN_USE_AUTOTUNE=0 skips the autotuning, but may make every
later step slower. A card that TensorFlow was not built for needs another build; see ST111.

Blind spots
No event distinguishes loading from compiling and autotuning. Tested only on simulated traces, not
on a real GPU.
"""

from __future__ import annotations

from stall_analyzer.detectors.console_words import quoted
from stall_analyzer.detectors.gains import partly
from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.signals import Signals

ID = "ST114"
BUCKET = "compile"


def check(signals: Signals) -> Finding | None:
    lost = signals.causes_ps["compile.kernels"]
    severity = severity_of(signals.share(lost), once_ps=lost)
    if severity is None:
        return None
    trying = signals.console.warnings.get("autotuning")
    said = f" {quoted(trying)}" if trying is not None else ""
    if loading := signals.driver_calls.get("loading", 0):
        said = f" In all, the driver spent {seconds(loading)} loading or compiling modules.{said}"
    return Finding(
        severity=severity,
        title=f"The first run on the device takes {seconds(lost)} longer: its kernels are being "
        f"prepared",
        explanation=(
            f"The graph's first run on the device took {signals.with_share(lost)} longer than "
            f"later ones. That is when libraries and kernels are loaded, any kernels that the "
            f"build lacks for this card are compiled from PTX, and cuDNN and XLA autotune their "
            f"algorithms.{said}"
        ),
        change=Change(
            "This happens only once per process and shape, so use few different shapes. If later "
            "steps do not need the fastest convolution, turn autotuning off.",
            "data = data.batch(32)",
            "data = data.batch(32, drop_remainder=True)\n# export TF_CUDNN_USE_AUTOTUNE=0",
        ),
        lost_ps=lost,
        gain=partly(lost, 0, 0.8),
        confidence=0.7,
        evidence=signals.evidence_of("compile.kernels", "first run on the device"),
    )
