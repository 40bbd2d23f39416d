"""Whether Keras goes through data that repeat forever, and was not told when to stop."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def is_endless(epoch_iterator: Any) -> bool:
    """Of Keras 3's iterator over the batches of an epoch or a validation; False: not known."""
    if epoch_iterator is None or getattr(epoch_iterator, "steps_per_epoch", 0) is not None:
        return False
    adapter = getattr(epoch_iterator, "data_adapter", None)
    dataset = getattr(adapter, "_dataset", None)
    if not isinstance(dataset, tf.data.Dataset):
        return False
    return bool(int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY)
