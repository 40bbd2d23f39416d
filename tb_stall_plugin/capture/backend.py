"""What this process trains with: TensorFlow, or Keras 3 on JAX or PyTorch."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec

TENSORFLOW = "tensorflow"


def backend() -> str:
    """Keras's name of the backend. Without Keras: TensorFlow if it is there, else nothing."""
    if os.environ.get("TF_USE_LEGACY_KERAS") == "1" or (
        "keras" not in sys.modules and TENSORFLOW in sys.modules
    ):
        return TENSORFLOW
    if find_spec("keras") is not None:
        return str(import_module("keras").backend.backend())
    return TENSORFLOW if find_spec(TENSORFLOW) is not None else ""


def trains_with_tensorflow() -> bool:
    return backend() == TENSORFLOW
