"""Batch-hard triplet embedding of the digits, own loop with GradientTape."""
from common import *


class Embedder(keras.Model):
    def __init__(self, dim=16):
        super().__init__()
        self.a = L.Dense(128, activation="relu")
        self.b = L.Dense(64, activation="relu")
        self.c = L.Dense(dim)

    def call(self, x):
        return tf.math.l2_normalize(self.c(self.b(self.a(x))), axis=-1)


def pairwise_distances(e):
    dot = tf.matmul(e, e, transpose_b=True)
    sq = tf.linalg.diag_part(dot)
    d2 = sq[:, None] - 2.0 * dot + sq[None, :]
    return tf.sqrt(tf.maximum(d2, 0.0))


def batch_hard(e, y, margin=0.3):
    d = pairwise_distances(e)
    same = tf.cast(y[:, None] == y[None, :], tf.float32)
    hardest_pos = tf.reduce_max(d * same, axis=1)
    hardest_neg = tf.reduce_min(d + 10.0 * same, axis=1)
    return tf.reduce_mean(tf.nn.relu(hardest_pos - hardest_neg + margin))


def main(log):
    x, y = load("digits")
    x = (x / 16.0).astype("float32")
    ds = tf.data.Dataset.from_tensor_slices((x[:1400], y[:1400].astype("int32")))
    ds = ds.shuffle(1400, seed=1).batch(64, drop_remainder=True)
    model = Embedder()
    model(x[:2])
    opt = keras.optimizers.Adam(1e-3)
    opt.build(model.trainable_variables)

    @tf.function
    def train(xb, yb):
        with tf.GradientTape() as tape:
            loss = batch_hard(model(xb, training=True), yb)
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    with log.loop(model, opt) as (epoch, step):
        for _ in range(10):
            epoch()
            for xb, yb in ds:
                step(train(xb, yb))


if __name__ == "__main__":
    run(main)
