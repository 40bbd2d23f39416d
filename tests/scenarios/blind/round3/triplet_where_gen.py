"""Metric learning: triplets picked by a generator that scans all labels for each sample."""
from harness import *

N, DIM = 250_000, 32


def main(h):
    rng = np.random.default_rng(0)
    feats = rng.standard_normal((N, DIM), dtype="float32")
    labels = rng.integers(0, 200, N)
    by_class = None
    if h.fixed:
        order = np.argsort(labels, kind="stable")
        by_class = np.split(order, np.cumsum(np.bincount(labels, minlength=200))[:-1])

    def triplets():
        while True:
            i = rng.integers(N)
            c = labels[i]
            if by_class is None:
                p = rng.choice(np.where(labels == c)[0])
                n = rng.choice(np.where(labels != c)[0])
            else:
                p = rng.choice(by_class[c])
                other = (c + rng.integers(1, 200)) % 200
                n = rng.choice(by_class[other])
            yield feats[i], feats[p], feats[n]

    spec = tuple(tf.TensorSpec((DIM,), tf.float32) for _ in range(3))
    ds = tf.data.Dataset.from_generator(h.gen(triplets), output_signature=spec).batch(32).prefetch(4)

    class Triplet(keras.Model):
        def __init__(self):
            super().__init__()
            self.embed = keras.Sequential([keras.Input((DIM,)), keras.layers.Dense(128, activation="relu"),
                                           keras.layers.Dense(64), keras.layers.UnitNormalization()])
            self.loss_tracker = keras.metrics.Mean(name="loss")

        def call(self, x):
            return self.embed(x)

        def train_step(self, data):
            a, p, n = data
            with tf.GradientTape() as tape:
                a, p, n = self.embed(a), self.embed(p), self.embed(n)
                d = tf.reduce_sum((a - p) ** 2, -1) - tf.reduce_sum((a - n) ** 2, -1)
                loss = tf.reduce_mean(tf.nn.relu(d + 0.2))
            g = tape.gradient(loss, self.embed.trainable_variables)
            self.optimizer.apply_gradients(zip(g, self.embed.trainable_variables))
            self.loss_tracker.update_state(loss)
            return {"loss": self.loss_tracker.result()}

    model = Triplet()
    model.compile(optimizer="adam")
    h.fit(model, ds, steps_per_epoch=80)
