"""Speech frames through a GRU, buckets by length, a learning-rate finder by batch. In order."""
from harness import *

MELS = 32


class LRFinder(keras.callbacks.Callback):
    def __init__(self, h, lo=1e-5, hi=1e-1, steps=40):
        super().__init__()
        self.h, self.lr, self.factor = h, lo, (hi / lo) ** (1 / steps)
        self.seen = []

    def on_train_batch_end(self, batch, logs=None):
        with self.h.clock("callback"):
            self.seen.append((self.lr, logs["loss"]))
            self.lr *= self.factor
            self.model.optimizer.learning_rate.assign(self.lr)


def main(h):
    rng = np.random.default_rng(4)
    n = 1920
    lengths = rng.integers(30, 120, n)
    data = rng.normal(size=(int(lengths.sum()), MELS)).astype("float32")
    ragged = tf.RaggedTensor.from_row_lengths(data, lengths)
    labels = rng.integers(0, 6, n)
    ds = tf.data.Dataset.from_tensor_slices((ragged, labels))
    ds = ds.map(lambda r, y: (r.to_tensor() if isinstance(r, tf.RaggedTensor) else r, y))
    ds = ds.group_by_window(
        key_func=lambda x, y: tf.cast(tf.shape(x)[0] // 30, tf.int64),
        reduce_func=lambda k, w: w.padded_batch(32, padded_shapes=((None, MELS), ())),
        window_size=32,
    )
    ds = ds.prefetch(tf.data.AUTOTUNE)
    i = keras.Input((None, MELS))
    z = keras.layers.GRU(192, return_sequences=True)(i)
    z = keras.layers.GlobalAveragePooling1D()(z)
    o = keras.layers.Dense(6, activation="softmax")(z)
    model = keras.Model(i, o)
    model.compile("adam", "sparse_categorical_crossentropy")
    h.fit(model, ds, callbacks=[LRFinder(h)])
