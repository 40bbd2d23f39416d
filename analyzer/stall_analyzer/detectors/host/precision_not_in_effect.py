"""The model asks for mixed precision, but the GPU still computes in full precision.

What it finds
Layers with a mixed policy, on a card built for half precision, whose matrix products and
convolutions run in full-precision kernels.

Why it stalls
Half precision is two to eight times as fast on such cards, and moves half the bytes. If the policy
was set after the layers were created, or an op casts back to float32, that advantage is lost.

How it is measured
The dtype policies of the stored model, the compute capability of the card, and the names of its
kernels for matrix products and convolutions, weighted by time.

Example
All layers are mixed_float16, but 97% of the time in matrix products went to float32 kernels.

What to do
Set the policy before the model is created; look for casts to float32 in your own layers and losses.
Layer and batch sizes that are multiples of eight allow the fast kernels to be used.

Blind spots
Only a kernel's name shows which precision it computes in. Tested only on simulated traces, not on a
real GPU.
"""

from __future__ import annotations

from stall_analyzer.detectors.severity import severity_of
from stall_analyzer.model.findings import Change, Finding
from stall_analyzer.model.format import counted, percent
from stall_analyzer.signals.signals import Signals

ID = "ST418"
BUCKET = "compute"

FIRST_WITH_TENSOR_CORES = 7  # major number of NVIDIA's compute capability
# In the names of cuBLAS, cuDNN, CUTLASS and XLA kernels: matrix products, and half precision.
PRODUCTS = ("gemm", "conv", "cutlass", "xmma", "cublas", "cudnn")
HALF = ("fp16", "f16", "half", "hgemm", "h884", "h1688", "h16816")
IN_EFFECT = 0.05  # of the time in matrix products: then some of them use half precision


def check(signals: Signals) -> Finding | None:
    layers = signals.keras.layers if signals.keras is not None else ()
    mixed = sum("mixed" in str(layer.get("dtype")) for layer in layers)
    if not mixed or 2 * mixed < len(layers):
        return None
    products = half = 0
    for device in signals.device_activity:
        major = device.facts.get("compute_cap_major")
        if not isinstance(major, int) or major < FIRST_WITH_TENSOR_CORES:
            return None
        for name, done in device.ops.items():
            lower = name.lower()
            if any(word in lower for word in PRODUCTS):
                products += done.ps
                half += done.ps if any(word in lower for word in HALF) else 0
    severity = severity_of(signals.share(products))
    if severity is None or half > IN_EFFECT * products:
        return None
    return Finding(
        severity="consider",
        title="Mixed precision is requested but not in effect",
        explanation=(
            f"{mixed} of {counted(len(layers), 'layer')} {'has' if mixed == 1 else 'have'} a mixed "
            f"policy, but "
            f"{percent(products - half, products)} of the device's time in matrix products and "
            f"convolutions went to full-precision kernels."
        ),
        change=Change(
            "Set the policy before the model is created, and cast nothing back to float32 in "
            "between.",
            'model = build()\nkeras.mixed_precision.set_global_policy("mixed_float16")',
            'keras.mixed_precision.set_global_policy("mixed_float16")\nmodel = build()',
        ),
        confidence=0.6,
    )
