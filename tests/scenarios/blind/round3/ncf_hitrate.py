"""Neural collaborative filtering with a callback that reports HR@10 while training."""
from harness import *

USERS, ITEMS = 3000, 2000


class HitRate(keras.callbacks.Callback):
    def __init__(self, h, users, every):
        super().__init__()
        self.h, self.users, self.every, self.history = h, users, every, []
        rng = np.random.default_rng(11)
        self.cands = rng.integers(0, ITEMS, (len(users), 100)).astype("int32")

    def evaluate(self):
        with self.h.clock("callback"):
            hits = 0
            pairs = [np.repeat(self.users, 100).astype("int32")[:, None],
                     self.cands.reshape(-1, 1)]
            scores = self.model.predict(pairs, batch_size=128, verbose=0).reshape(-1, 100)
            for row in scores:  # the positive is in column 0
                top = np.argsort(-row)[:10]
                hits += int(0 in top)
            self.history.append(hits / len(self.users))

    def on_train_batch_end(self, batch, logs=None):
        if self.every and batch % self.every == self.every - 1:
            self.evaluate()

    def on_epoch_end(self, epoch, logs=None):
        if not self.every:
            self.evaluate()


def main(h):
    rng = np.random.default_rng(0)
    n = 256 * 240
    u = rng.integers(0, USERS, (n, 1)).astype("int32")
    i = rng.integers(0, ITEMS, (n, 1)).astype("int32")
    y = ((u * 7 + i * 3) % 5 == 0).astype("float32")

    ui, ii = keras.Input((1,), dtype="int32"), keras.Input((1,), dtype="int32")
    gu = keras.layers.Flatten()(keras.layers.Embedding(USERS, 8)(ui))
    gi = keras.layers.Flatten()(keras.layers.Embedding(ITEMS, 8)(ii))
    mu = keras.layers.Flatten()(keras.layers.Embedding(USERS, 16)(ui))
    mi = keras.layers.Flatten()(keras.layers.Embedding(ITEMS, 16)(ii))
    x = keras.layers.Concatenate()([mu, mi])
    for k in (32, 16):
        x = keras.layers.Dense(k, activation="relu")(x)
    x = keras.layers.Concatenate()([keras.layers.Multiply()([gu, gi]), x])
    model = keras.Model([ui, ii], keras.layers.Dense(1, activation="sigmoid")(x))
    model.compile("adam", "binary_crossentropy")
    ds = tf.data.Dataset.from_tensor_slices(((u, i), y)).batch(256).prefetch(2)
    cb = HitRate(h, np.arange(0, USERS, 15), None if h.fixed else 20)
    h.fit(model, ds, callbacks=[cb])
