"""The driver compiles every kernel: TensorFlow was not built for this GPU.

What it finds
A GPU newer than the TensorFlow that runs on it, so that no kernel is there in its machine code.

Why it stalls
The driver translates each kernel from PTX when it is first used. TensorFlow itself says that this
may take 30 minutes or longer; during that time the training looks stuck.

How it is measured
TensorFlow's warning on the console of the job.

Example
An H100 with TensorFlow 2.12: "TensorFlow was not built with CUDA kernel binaries compatible with
compute capability 9.0. CUDA kernels will be jit-compiled from PTX …"

What to do
Install a TensorFlow (or NVIDIA's container) that was built for the GPU. Until then keep the
driver's cache between runs: set CUDA_CACHE_PATH to a folder that stays, and CUDA_CACHE_MAXSIZE to
4 GB.

Blind spots
How long the compiling took is not on the console. With the driver's cache filled it is over at
once, and the warning still comes.
"""

from __future__ import annotations

from stall_analyzer.detectors.console_words import quoted
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.signals import Signals

ID = "ST111"
BUCKET = "compile"


def check(signals: Signals) -> Finding | None:
    warning = signals.console.warnings.get("ptx")
    if warning is None:
        return None
    return Finding(
        severity="consider",
        title="TensorFlow was not built for this GPU: the driver compiles every kernel first",
        explanation=(
            f"{quoted(warning)} It happens once per machine, unless the driver's cache is lost or "
            "too small, as in a new container."
        ),
        change=Change(
            "Install a TensorFlow that was built for this GPU, or keep the driver's cache.",
            "",
            "export CUDA_CACHE_PATH=/a/folder/that/stays\nexport CUDA_CACHE_MAXSIZE=4294967296",
        ),
        confidence=0.7,
    )
