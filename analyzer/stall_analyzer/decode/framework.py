"""Which framework's program a trace shows, by names that only that framework uses.

JAX and PyTorch/XLA write the same kind of file as TensorFlow. A JAX program that reads its data
with tf.data is still a JAX program; a program that calls tf.functions is a TensorFlow program,
whatever else it calls.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from stall_analyzer.model.kinds import Framework
from stall_analyzer.model.patterns import pattern

# What jax.jit calls on the host; and the compiled module, on a TPU, and on a GPU or CPU.
JAX = ("PjitFunction(", "trace_to_jaxpr", "np.asarray(jax.Array)", "$pxla.py:")
JAX_MODULES = ("jit_", "pmap_")
JAX_MODULE = pattern(r"\w+(?:\(\d+\)|:XLA \w+ module)")
# The graph that PyTorch/XLA has collected when its tensors are needed, and its Python.
PYTORCH_XLA, PYTORCH_XLA_PACKAGE = "SyncTensorsGraph", "torch_xla"
# How the runtime executes a tf.function. Building one means nothing: tf.data does so, too.
TENSORFLOW = tuple(f"Eager{how}Execute: __inference_" for how in ("", "Local", "Remote"))
TF_FUNCTION_STAT = "tf_function_call"


def framework_of(names: Iterable[str], stats: Container[str]) -> Framework:
    """By the names of a trace's events and stats; TensorFlow unless something says otherwise."""
    if TF_FUNCTION_STAT in stats:
        return "tensorflow"
    found: Framework = "tensorflow"
    for name in names:
        if name.startswith(TENSORFLOW):
            return "tensorflow"
        if name.startswith(PYTORCH_XLA) or PYTORCH_XLA_PACKAGE in name:
            found = "pytorch_xla"
        elif found == "tensorflow" and _is_jax(name):
            found = "jax"
    return found


def _is_jax(name: str) -> bool:
    if name.startswith(JAX):
        return True
    return name.startswith(JAX_MODULES) and JAX_MODULE.fullmatch(name) is not None
