"""TensorFlow did not find the GPU's libraries and trains on the CPU.

What it finds
TensorFlow's own warning that it could not load what it needs for a GPU.

Why it stalls
The model computes on the CPU, many times slower, without any error.

How it is measured
From the warnings at the beginning of the job's console output. "Cannot dlopen some GPU libraries"
appears only where a GPU was found; "Could not find cuda drivers" also appears on machines without
one.

Example
"Cannot dlopen some GPU libraries. … Skipping registering GPU devices..."

What to do
Run pip install "tensorflow[and-cuda]", or use a container with the CUDA and cuDNN versions that
this TensorFlow was built for. Then check tf.config.list_physical_devices("GPU").

Blind spots
On a machine without a GPU, the warning is harmless; the console does not always show whether there
is a GPU.
"""

from __future__ import annotations

from stall_analyzer.detectors.console_words import quoted
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.signals.signals import Signals

ID = "ST413"
BUCKET = "compute"


HAS_GPU = "Cannot dlopen some GPU libraries"


def check(signals: Signals) -> Finding | None:
    warning = signals.console.warnings.get("gpu_libraries")
    if warning is None or signals.devices.used:
        return None
    return Finding(
        severity="consider" if HAS_GPU in warning.line.text else "note",
        title="TensorFlow could not load the GPU's libraries and trained on the CPU",
        explanation=quoted(warning),
        change=Change(
            "If the machine has a GPU, install the CUDA libraries that this TensorFlow needs.",
            "pip install tensorflow",
            'pip install "tensorflow[and-cuda]"',
        ),
        confidence=0.8 if HAS_GPU in warning.line.text else 0.5,
    )
