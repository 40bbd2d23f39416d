"""CUDA or cuDNN failed.

What it finds
CUDA and cuDNN errors on the console, by name.

Why it stalls
After most of these errors, the process can no longer use its GPU: it ends, or hangs while the other
workers wait.

How it is measured
The names of the errors on the job's console.

Example
"CUDNN_STATUS_NOT_INITIALIZED" at the first convolution: another process had taken the GPU's memory.

What to do
That depends on the error; the finding says what the error means and what to do about it.

Blind spots
An error may also be printed when TensorFlow tries something and continues without it.
"""

from __future__ import annotations

from stall_analyzer.detectors.console_words import quoted
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.signals import Signals

ID = "ST416"
BUCKET = "compute"

# What an error means, and what to do. The first one found in a line counts.
MEANINGS: tuple[tuple[str, str, str], ...] = (
    (
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "The driver is older than the CUDA version that compiled the kernels.",
        "Update the driver.",
    ),
    (
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "This build of TensorFlow contains no code for this GPU, not even PTX.",
        "Install a TensorFlow build that supports this GPU.",
    ),
    (
        "no kernel image is available",
        "This build of TensorFlow contains no code for this GPU, not even PTX.",
        "Install a TensorFlow build that supports this GPU.",
    ),
    (
        "CUDA_ERROR_INVALID_PTX",
        "The driver cannot compile these kernels for this GPU.",
        "Install a TensorFlow build that supports this GPU, or update the driver.",
    ),
    (
        "CUDA_ERROR_LAUNCH_TIMEOUT",
        "A kernel never ended, or ran longer than the watchdog of a GPU with a display allows.",
        "Train on a GPU without a display; look for a worker that does not reach its collective.",
    ),
    (
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "A kernel read or wrote outside its memory; this process can no longer use the GPU.",
        "Run once with CUDA_LAUNCH_BLOCKING=1 to see which op it was; look for bad indices.",
    ),
    (
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        "The GPU's memory has an error that could not be corrected.",
        "Check it with nvidia-smi -q -d ECC, and reset the GPU or use another one.",
    ),
    (
        "CUDNN_STATUS_NOT_INITIALIZED",
        "cuDNN could not start: usually no memory was left, or the wrong cuDNN version was loaded.",
        "Free the GPU's memory (nvidia-smi shows which process has it), or turn memory growth on.",
    ),
    (
        "CUDNN_STATUS_INTERNAL_ERROR",
        "cuDNN could not create its handle: usually no memory was left for it.",
        "Free the GPU's memory (nvidia-smi shows which process has it), or turn memory growth on.",
    ),
)


def check(signals: Signals) -> Finding | None:
    line = signals.console.warnings.get("cuda_failure")
    if line is None:
        return None
    text = line.line.text
    for name, meaning, change in MEANINGS:
        if name in text:
            return Finding(
                severity="consider",
                title=f"CUDA failed: {name}",
                explanation=f"{meaning} {quoted(line)}",
                change=Change(change),
                confidence=0.7,
            )
    return None
