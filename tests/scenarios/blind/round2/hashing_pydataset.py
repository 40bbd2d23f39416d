"""Click-through rate (Criteo-like rows): the hashing trick in __getitem__ of a PyDataset, no workers."""
from harness import *
import hashlib

COLS, BUCKETS, BATCH, STEPS = 26, 4000, 256, 300


def bucket(col, value):
    return int(hashlib.md5(f"C{col}={value}".encode()).hexdigest(), 16) % BUCKETS


class Clicks(keras.utils.PyDataset):
    def __init__(self, h, rows, dense, y, weights, **kw):
        super().__init__(**kw)
        self.h, self.rows, self.dense, self.y, self.w = h, rows, dense, y, weights
        self.ready = None
        if h.fixed:  # hash each distinct value once, before training
            table = {}
            self.ready = np.array(
                [
                    [table[c, v] if (c, v) in table else table.setdefault((c, v), bucket(c, v)) for c, v in enumerate(r)]
                    for r in rows
                ],
                "int32",
            )

    def __len__(self):
        return STEPS

    def __getitem__(self, i):
        with self.h.clock("getitem"):
            s = slice(i * BATCH, (i + 1) * BATCH)
            if self.ready is not None:
                cat = self.ready[s]
            else:
                cat = np.array([[bucket(c, v) for c, v in enumerate(r)] for r in self.rows[s]], "int32")
            num = np.log1p(self.dense[s])
            return (cat, num), self.y[s], self.w[s]


def main(h):
    rng = np.random.default_rng(3)
    n = BATCH * STEPS
    vals = (rng.zipf(1.4, (n, COLS)) % 5000).tolist()
    dense = rng.exponential(3, (n, 13)).astype("float32")
    y = (rng.random((n, 1)) < 0.25).astype("float32")
    w = rng.uniform(0.5, 1.5, n).astype("float32")
    cat = keras.Input((COLS,), dtype="int32")
    num = keras.Input((13,))
    e = keras.layers.Embedding(BUCKETS, 4)(cat)
    z = keras.layers.Concatenate()([keras.layers.Flatten()(e), num])
    z = keras.layers.Dense(32, activation="relu")(z)
    model = keras.Model([cat, num], keras.layers.Dense(1, activation="sigmoid")(z))
    model.compile(keras.optimizers.Adagrad(0.05), "binary_crossentropy")
    h.fit(model, Clicks(h, vals, dense, y, w))
