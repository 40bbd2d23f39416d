"""Three shard readers meet at a barrier between passes; only two may be called at once."""
import threading
from common import *

SHARDS = 3
pass_done = threading.Barrier(SHARDS)


def read_shard(shard):
    for _ in range(100):
        for _ in range(20):
            yield arrays()
        pass_done.wait()


def shard_dataset(shard):
    return tf.data.Dataset.from_generator(read_shard, args=(shard,), output_signature=SIG)


ds = tf.data.Dataset.range(SHARDS).interleave(
    shard_dataset, cycle_length=SHARDS, num_parallel_calls=2, deterministic=True)

m = model()
m.fit(ds.prefetch(2), steps_per_epoch=500, epochs=2, verbose=2)
