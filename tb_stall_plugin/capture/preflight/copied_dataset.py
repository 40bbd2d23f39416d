"""A copy of a tf.data pipeline, so that reading it leaves the user's own pipeline as it was.

To reshuffle in each epoch, a dataset counts its iterators: one of ours would change the order of
the user's. So the graph of the pipeline is copied, including its counters. A pipeline that cannot
be copied, because it draws random numbers, calls Python or writes files, is not read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.python.data.ops import dataset_ops

FAIL_IF_STATEFUL = 2  # of TensorFlow's ExternalStatePolicy
MOST_BYTES = 512 << 20  # of data in memory, which is copied too
MOST_SHUFFLED = 512  # examples that our copy reads ahead to shuffle
WRITES = ("CacheDataset", "SnapshotDataset", "SaveDataset", "DataServiceDataset")


class CannotCopy(Exception):
    """Says why, in words for the user."""


def copied(dataset: tf.data.Dataset[Any]) -> tf.data.Dataset[Any]:
    if _bytes_in(dataset) > MOST_BYTES:
        raise CannotCopy("the pipeline holds too much data in memory to be copied")
    try:
        serialized = tf.raw_ops.DatasetToGraphV2(
            input_dataset=dataset._variant_tensor,
            external_state_policy=FAIL_IF_STATEFUL,
            strip_device_assignment=True,
        )
    except Exception as error:
        raise CannotCopy(
            "the pipeline calls Python or draws random numbers, so reading it would change what "
            "training sees"
        ) from error
    graph = graph_pb2.GraphDef.FromString(serialized.numpy())
    if any(node.op.startswith(WRITES) for node in graph.node):
        raise CannotCopy(
            "the pipeline stores what is read (in a cache, for example), so reading it here would "
            "fill that store"
        )
    _shuffle_apart(graph)
    variant = tf.raw_ops.DatasetFromGraph(graph_def=graph.SerializeToString())
    return dataset_ops._VariantDataset(variant, dataset.element_spec)


def _bytes_in(dataset: Any) -> int:
    tensors = tf.nest.flatten(getattr(dataset, "_tensors", ()), expand_composites=True)
    own = sum(t.shape.num_elements() * t.dtype.size for t in tensors if t.shape.num_elements())
    return int(own) + sum(_bytes_in(source) for source in dataset._inputs())


def _shuffle_apart(graph: graph_pb2.GraphDef) -> None:
    """Each shuffle draws from a generator that belongs to the user's pipeline, so the older form of
    the op is used, which has none. Filling the whole buffer may take minutes, so it is limited."""
    nodes = {node.name: node for node in graph.node}
    for node in list(graph.node):
        if node.op == "ShuffleDatasetV3":
            node.op = "ShuffleDataset"
            generator = nodes[node.input.pop()]
            if not any(generator.name in other.input for other in graph.node):
                graph.node.remove(generator)
            _limit(nodes[node.input[1]])
        elif node.op.startswith("Shuffle"):
            raise CannotCopy("reading the pipeline would change how it shuffles")


def _limit(size: Any) -> None:
    if size.op == "Const" and tf.make_ndarray(size.attr["value"].tensor) > MOST_SHUFFLED:
        size.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.int64(MOST_SHUFFLED)))
