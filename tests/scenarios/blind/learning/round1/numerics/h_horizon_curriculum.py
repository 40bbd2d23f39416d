"""Forecasting with a curriculum: each epoch asks for horizons further ahead, so the training loss goes up."""
from common import *

WINDOW, FAR = 12, 16


def oscillator(n=4000):
    rng = np.random.default_rng(9)
    s = np.zeros(n)
    for t in range(2, n):
        s[t] = 1.80 * s[t - 1] - 0.92 * s[t - 2] + rng.normal()
    return ((s - s.mean()) / s.std()).astype("float32")


def batch_of(s, start, horizon):
    x = np.stack([s[k:k + WINDOW] for k in start])
    hot = np.eye(FAR, dtype="float32")[horizon - 1]
    return {"window": x, "horizon": hot}, s[start + WINDOW - 1 + horizon][:, None]


class Curriculum(keras.utils.PyDataset):
    def __init__(self, s, steps=50, size=64):
        super().__init__()
        self.s, self.steps, self.size, self.reach = s, steps, size, 1
        self.rng = np.random.default_rng(0)

    def __len__(self):
        return self.steps

    def __getitem__(self, _):
        start = self.rng.integers(0, len(self.s) - WINDOW - FAR, self.size)
        return batch_of(self.s, start, self.rng.integers(1, self.reach + 1, self.size))

    def on_epoch_end(self):
        self.reach = min(FAR, self.reach + 2)


def main(log):
    s = oscillator()
    a, b = keras.Input((WINDOW,), name="window"), keras.Input((FAR,), name="horizon")
    h = L.Concatenate()([a, L.Dense(16)(b)])
    h = L.Dense(96, activation="relu")(h)
    h = L.Multiply()([h, L.Dense(96)(b)])
    h = L.Dense(48, activation="relu")(h)
    model = keras.Model({"window": a, "horizon": b}, L.Dense(1)(h))
    model.compile(keras.optimizers.Adam(3e-3), loss="mse", metrics=["mae"])
    rng = np.random.default_rng(77)
    val = batch_of(s, rng.integers(3000, 4000 - WINDOW - FAR, 1000), rng.integers(1, FAR + 1, 1000))
    model.fit(Curriculum(s[:3000]), validation_data=val, epochs=12, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
