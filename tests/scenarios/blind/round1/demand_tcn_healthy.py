"""Demand forecast: dilated convolutions over a PyDataset; metric and schedule written by hand.

Looks odd (a Python __getitem__ without workers, no tf.data), but the convolutions are the time.
"""
from harness import *

WINDOW, SERIES, BATCH, STEPS = 128, 8, 64, 45


class Windows(keras.utils.PyDataset):
    def __init__(self, sales, h, **kw):
        super().__init__(**kw)
        self.h = h
        self.view = np.lib.stride_tricks.sliding_window_view(sales, WINDOW + 1, axis=0)
        self.order = np.random.default_rng(2).permutation(len(self.view))[: BATCH * STEPS]

    def __len__(self):
        return STEPS

    def __getitem__(self, i):
        with self.h.clock("generator"):
            w = self.view[self.order[i * BATCH : (i + 1) * BATCH]].transpose(0, 2, 1)
            return np.ascontiguousarray(w[:, :-1]), np.ascontiguousarray(w[:, -1])


class Smape(keras.metrics.Metric):
    def __init__(self, name="smape", **kw):
        super().__init__(name=name, **kw)
        self.s = self.add_weight(name="s", initializer="zeros")
        self.n = self.add_weight(name="n", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        e = 2 * tf.abs(y_true - y_pred) / (tf.abs(y_true) + tf.abs(y_pred) + 1e-6)
        self.s.assign_add(tf.reduce_sum(e))
        self.n.assign_add(tf.cast(tf.size(e), tf.float32))

    def result(self):
        return self.s / tf.maximum(self.n, 1.0)


class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    def __call__(self, step):
        step = tf.cast(step, tf.float32)
        return 1e-3 * tf.minimum(1.0, (step + 1) / 20.0)


def main(h):
    rng = np.random.default_rng(0)
    t = np.arange(6000)[:, None]
    sales = 5 + np.sin(2 * np.pi * t / 7 + np.arange(SERIES)) + rng.normal(0, 0.2, (6000, SERIES))
    data = Windows(sales.astype("float32"), h)

    inputs = keras.Input((WINDOW, SERIES))
    x = keras.layers.Conv1D(96, 1)(inputs)
    for d in (1, 2, 4, 8):
        y = keras.layers.Conv1D(96, 3, padding="causal", dilation_rate=d, activation="relu")(x)
        y = keras.layers.Conv1D(96, 1)(y)
        x = keras.layers.Add()([x, y])
    out = keras.layers.Dense(SERIES)(x[:, -1])
    model = keras.Model(inputs, out)
    model.compile(keras.optimizers.Adam(WarmUp()), "mse", metrics=[Smape()])
    h.fit(model, data)
