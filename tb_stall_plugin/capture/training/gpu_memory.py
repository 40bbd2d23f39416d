"""How much memory of each GPU is in use. The host's memory is sampled elsewhere."""

from __future__ import annotations

import tensorflow as tf

from stall_analyzer.captures.capture_format import Tag


def bytes_in_use() -> dict[str, float]:
    """Scalars by tag, for devices that report it."""
    values = {}
    for device in tf.config.list_logical_devices("GPU"):
        name = device.name.removeprefix("/device:")
        try:
            in_use = tf.config.experimental.get_memory_info(name)["current"]
        except Exception:  # not every allocator keeps count
            continue
        values[f"{Tag.DEVICE}{name}{Tag.BYTES_IN_USE}"] = float(in_use)
    return values
