"""The model and how it was compiled, in the form that Keras's TensorBoard callback stores."""

from __future__ import annotations

import json
from typing import Any

import tensorflow as tf


def model_json(model: Any, optimizer: Any) -> str | None:
    """None where Keras can say nothing about it. Subclassed models have no layers here:
    the order in which they are called is not known."""
    stored = _described(model)
    compiled = stored.get("compile_config") or _compile_config(model)
    if optimizer is not None and getattr(model, "optimizer", None) is not optimizer:
        # A custom loop: what the model was compiled with is not what trains it.
        compiled = {"optimizer": tf.keras.optimizers.serialize(optimizer)}
    if compiled:
        stored["compile_config"] = compiled
    if not compiled and "layers" not in (stored.get("config") or {}):
        return None
    return json.dumps(stored, default=str)


def _described(model: Any) -> dict[str, Any]:
    try:
        stored = json.loads(model.to_json())
        if isinstance(stored, dict):
            return stored
    except Exception:  # whatever a custom layer raises: it has no configuration
        pass
    return {"class_name": type(model).__name__, "config": {}}


def _compile_config(model: Any) -> Any:
    """Keras 2 does not store it with the model, though it knows it."""
    try:
        return model.get_compile_config()
    except Exception:  # not compiled, or with an object that has no configuration
        return None
