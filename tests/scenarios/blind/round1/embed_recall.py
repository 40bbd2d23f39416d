"""Metric learning with a triplet loss; retrieval metrics at the end of every epoch."""
from harness import *


class TripletNet(keras.Model):
    def __init__(self, dim=32, margin=0.3):
        super().__init__()
        self.net = keras.Sequential(
            [
                keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
                keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
                keras.layers.GlobalAveragePooling2D(),
                keras.layers.Dense(dim),
                keras.layers.UnitNormalization(),
            ]
        )
        self.margin = margin
        self.loss_tracker = keras.metrics.Mean(name="loss")

    def call(self, x, training=False):
        return self.net(x, training=training)

    @property
    def metrics(self):
        return [self.loss_tracker]

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            e = self(x, training=True)
            dist = 1.0 - tf.matmul(e, e, transpose_b=True)
            same = tf.equal(y[:, None], y[None, :])
            hardest_pos = tf.reduce_max(tf.where(same, dist, 0.0), 1)
            hardest_neg = tf.reduce_min(tf.where(same, 2.0, dist), 1)
            loss = tf.reduce_mean(tf.nn.relu(hardest_pos - hardest_neg + self.margin))
        g = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(g, self.trainable_variables))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}


def retrieval_loops(emb, y):
    """Recall at 1 and mean average precision, every sample a query."""
    hits, aps = [], []
    for i in range(len(emb)):
        d = np.sqrt(((emb - emb[i]) ** 2).sum(axis=1))
        order = [j for j in np.argsort(d) if j != i]
        rel = [y[j] == y[i] for j in order]
        hits.append(rel[0])
        found, precisions = 0, []
        for rank, r in enumerate(rel):
            if r:
                found += 1
                precisions.append(found / (rank + 1))
        aps.append(np.mean(precisions))
    return float(np.mean(hits)), float(np.mean(aps))


def retrieval_matrix(emb, y):
    d = -emb @ emb.T
    np.fill_diagonal(d, np.inf)
    order = np.argsort(d, axis=1)[:, :-1]
    rel = y[order] == y[:, None]
    prec = np.cumsum(rel, 1, dtype="float32") / np.arange(1, rel.shape[1] + 1, dtype="float32")
    ap = (prec * rel).sum(1) / rel.sum(1)
    return float(rel[:, 0].mean()), float(ap.mean())


class Retrieval(keras.callbacks.Callback):
    def __init__(self, x, y, h):
        super().__init__()
        self.x, self.y, self.h = x, y, h
        self.history = []

    def on_epoch_end(self, epoch, logs=None):
        with self.h.clock("predict"):
            emb = self.model.predict(self.x, batch_size=128, verbose=0)
        with self.h.clock("callback"):
            f = retrieval_matrix if self.h.fixed else retrieval_loops
            self.history.append(f(emb, self.y))


def main(h):
    rng = np.random.default_rng(9)
    n_classes = 12
    proto = rng.normal(size=(n_classes, 32, 32, 3)).astype("float32")
    y = rng.integers(0, n_classes, 6600)
    x = proto[y] + rng.normal(size=(6600, 32, 32, 3)).astype("float32")
    ds = tf.data.Dataset.from_tensor_slices((x[:4000], y[:4000]))
    ds = ds.shuffle(4000).batch(64, drop_remainder=True).prefetch(2)
    model = TripletNet()
    model.compile(optimizer=keras.optimizers.Adam(1e-3))
    h.fit(model, ds, callbacks=[Retrieval(x[4000:], y[4000:], h)])
