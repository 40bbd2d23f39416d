"""Day-ahead forecast of electric load: windows of one week, built in a PyDataset."""
import math

from harness import *

WINDOW, HORIZON, BATCH = 168, 24, 64


class LoadWindows(keras.utils.PyDataset):
    def __init__(self, load, temp, n_batches, h, **kw):
        super().__init__(**kw)
        self.load, self.temp, self.n, self.h = load, temp, n_batches, h
        self.starts = np.random.default_rng(1).integers(
            0, len(load) - WINDOW - HORIZON, n_batches * BATCH
        )
        t = np.arange(len(load))
        self.table = np.stack(
            [
                load,
                temp,
                np.sin(2 * np.pi * (t % 24) / 24),
                np.cos(2 * np.pi * (t % 24) / 24),
                ((t // 24) % 7 >= 5),
            ],
            axis=1,
        ).astype("float32")

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        with self.h.clock("generator"):
            starts = self.starts[i * BATCH : (i + 1) * BATCH]
            return self.fast(starts) if self.h.fixed else self.slow(starts)

    def fast(self, starts):
        x = self.table[starts[:, None] + np.arange(WINDOW)]
        y = self.load[starts[:, None] + WINDOW + np.arange(HORIZON)]
        return x, y.astype("float32")

    def slow(self, starts):
        xs, ys = [], []
        for s in starts:
            window = []
            for t in range(s, s + WINDOW):
                hour = t % 24
                window.append(
                    [
                        self.load[t],
                        self.temp[t],
                        math.sin(2 * math.pi * hour / 24),
                        math.cos(2 * math.pi * hour / 24),
                        1.0 if (t // 24) % 7 >= 5 else 0.0,
                    ]
                )
            xs.append(window)
            ys.append([self.load[t] for t in range(s + WINDOW, s + WINDOW + HORIZON)])
        return np.array(xs, dtype="float32"), np.array(ys, dtype="float32")


def main(h):
    rng = np.random.default_rng(0)
    n = 24 * 365 * 2
    t = np.arange(n)
    temp = 10 + 10 * np.sin(2 * np.pi * t / 8760) + rng.normal(0, 1, n)
    load = 1 + 0.3 * np.sin(2 * np.pi * t / 24) - 0.01 * temp + rng.normal(0, 0.05, n)
    data = LoadWindows(load, temp, 130, h)

    inputs = keras.Input((WINDOW, 5))
    x = keras.layers.Conv1D(16, 6, strides=3, activation="relu")(inputs)
    x = keras.layers.Conv1D(16, 4, strides=2, activation="relu")(x)
    x = keras.layers.Flatten()(x)
    out = keras.layers.Dense(HORIZON)(x)
    model = keras.Model(inputs, out)
    model.compile(keras.optimizers.Adam(1e-3), loss="mae", metrics=["mse"])
    h.fit(model, data)
