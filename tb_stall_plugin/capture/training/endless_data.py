"""Whether Keras reads data that repeats forever and was not told when to stop."""

from __future__ import annotations

import inspect
from typing import Any

import tensorflow as tf

from tb_stall_plugin.capture.training.endless_generators import endless_generator


def is_endless(epoch_iterator: Any) -> bool:
    """For Keras 3's iterator over the batches of an epoch or a validation; False if not known."""
    if epoch_iterator is None or getattr(epoch_iterator, "steps_per_epoch", 0) is not None:
        return False
    adapter = getattr(epoch_iterator, "data_adapter", None)
    dataset = getattr(adapter, "_dataset", None)
    if not isinstance(dataset, tf.data.Dataset):
        return _yields_for_ever(adapter)
    is_endless = int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY
    return is_endless or bool(endless_generator(dataset))


def _yields_for_ever(adapter: Any) -> bool:
    """Keras keeps a generator whose first batches it has read in a variable of a function."""
    restored = getattr(adapter, "generator", None)
    if not inspect.isfunction(restored):
        return False
    return any(map(endless_generator, inspect.getclosurevars(restored).nonlocals.values()))
