"""Metric learning on the digits: contrastive loss over all the pairs of a batch."""
from common import *

MARGIN = 1.0


def pairwise_distance(a):
    sq = tf.reduce_sum(tf.square(a[:, None, :] - a[None, :, :]), axis=-1)
    return tf.sqrt(sq)


def contrastive(y_true, emb):
    y = tf.reshape(tf.cast(y_true, tf.int32), [-1])
    same = tf.cast(y[:, None] == y[None, :], emb.dtype)
    d = pairwise_distance(emb)
    pull = same * d
    push = (1.0 - same) * tf.square(tf.maximum(MARGIN - d, 0.0))
    return tf.reduce_mean(pull + push)


class Encoder(keras.Model):
    def __init__(self):
        super().__init__()
        self.body = keras.Sequential([L.Dense(64, activation="relu"), L.Dense(64, activation="relu"), L.Dense(8)])

    def call(self, x):
        z = self.body(x)
        return z / (tf.norm(z, axis=-1, keepdims=True) + 1e-6)


def main(log):
    x, y = load("digits")
    x = (x / 16.0).astype("float32")
    ds = tf.data.Dataset.from_tensor_slices((x, y.astype("int32"))).shuffle(1797, seed=1).batch(64, drop_remainder=True)
    model = Encoder()
    model.compile(keras.optimizers.Adam(1e-3), loss=contrastive)
    model.fit(ds, epochs=8, verbose=0, callbacks=log.callbacks())
    z = model.predict(x, verbose=0)
    d = ((z[:, None] - z[None]) ** 2).sum(-1)
    np.fill_diagonal(d, np.inf)
    print("recall@1", float((y[np.argmin(d, 1)] == y).mean()), "distance spread", float(np.std(d[np.isfinite(d)])) if np.isfinite(z).all() else "nan")


if __name__ == "__main__":
    run(main)
