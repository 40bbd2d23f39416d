"""Next-item recommender; each batch of sessions is one object in a remote store."""
from harness import *

ITEMS, LEN, BATCH, SHARDS = 2000, 20, 128, 90


def get_object(path):
    """GET from the object store: the round trip takes about 35 ms, then the bytes are local."""
    time.sleep(0.035)
    with open(path, "rb") as f:
        return np.load(f)


def main(h):
    rng = np.random.default_rng(0)
    folder = tempfile.mkdtemp(dir=SCRATCH)
    paths = []
    for i in range(SHARDS):
        p = os.path.join(folder, f"sessions-{i:05d}.npy")
        start = rng.integers(1, ITEMS, (BATCH, 1))
        walk = rng.integers(1, 30, (BATCH, LEN)).cumsum(axis=1)
        np.save(p, ((start + walk) % ITEMS).astype("int32"))
        paths.append(p)

    load = h.timed(lambda p: get_object(p.decode()), "py_function")

    def read(path):
        seq = tf.numpy_function(load, [path], tf.int32)
        seq = tf.ensure_shape(seq, (BATCH, LEN))
        return seq[:, :-1], seq[:, -1]

    ds = tf.data.Dataset.from_tensor_slices(paths).shuffle(SHARDS)
    if h.fixed:
        ds = ds.map(read, num_parallel_calls=12, deterministic=False).prefetch(12)
        options = tf.data.Options()
        options.threading.private_threadpool_size = 16
        ds = ds.with_options(options)
    else:
        ds = ds.map(read)

    model = keras.Sequential(
        [
            keras.layers.Embedding(ITEMS, 16),
            keras.layers.Conv1D(16, 3, activation="relu"),
            keras.layers.GlobalMaxPooling1D(),
            keras.layers.Dense(ITEMS),
        ]
    )
    model.compile(
        "adam",
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseTopKCategoricalAccuracy(10)],
    )
    h.fit(model, ds)
