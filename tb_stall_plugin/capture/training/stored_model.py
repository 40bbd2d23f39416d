"""The model and how it was compiled, in the form that Keras's TensorBoard callback stores."""

from __future__ import annotations

import json
from typing import Any

import tensorflow as tf


def model_json(model: Any, optimizer: Any) -> str | None:
    """None if Keras can say nothing about it. Subclassed models are stored without layers, since
    the order in which they call them is not known."""
    stored = _described(model)
    compiled = stored.get("compile_config") or _compile_config(model)
    if optimizer is not None and getattr(model, "optimizer", None) is not optimizer:
        # In a custom loop, the model is not trained with what it was compiled with.
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
    except Exception:  # a custom layer without a configuration may raise anything
        pass
    return {"class_name": type(model).__name__, "config": {}}


def _compile_config(model: Any) -> Any:
    """Keras 2 does not store it with the model, although it has it."""
    try:
        return model.get_compile_config()
    except Exception:  # not compiled, or with an object that has no configuration
        return None
