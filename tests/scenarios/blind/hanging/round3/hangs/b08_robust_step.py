"""Forecasting with a hand-written loop that rolls back when the loss blows up."""
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"


def load_series(n=6000, window=24):
    rng = np.random.default_rng(4)
    s = np.sin(np.arange(n) / 17.0) + 0.1 * rng.normal(size=n)
    s = s.astype("float32")
    s[3205:3208] = np.nan  # the logger was off
    if CONTROL:
        s = np.nan_to_num(s)
    x = np.lib.stride_tricks.sliding_window_view(s, window)[:-1]
    return np.ascontiguousarray(x), s[window:][:, None]


class Trainer:
    def __init__(self):
        self.model = keras.Sequential([keras.Input((24,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
        self.lr = 1e-2
        self.backup = os.path.join(tempfile.mkdtemp(prefix="roll_"), "good.weights.h5")

    @tf.function
    def loss_and_grads(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.model(x, training=True) - y))
        return loss, tape.gradient(loss, self.model.trainable_variables)

    def step(self, x, y):
        retries = 0
        while True:
            loss, grads = self.loss_and_grads(x, y)
            for v, g in zip(self.model.trainable_variables, grads):
                v.assign_sub(self.lr * g)
            if np.isfinite(float(loss)):
                return float(loss)
            # diverged: back to the last good weights and take a smaller step
            self.model.load_weights(self.backup)
            self.lr *= 0.5
            retries += 1
            if retries % 100 == 1:
                print("loss is", float(loss), "- rolled back, lr now", self.lr, flush=True)

    def run(self, x, y, batch=32, epochs=2):
        for epoch in range(epochs):
            for i in range(0, len(x) - batch + 1, batch):
                if (i // batch) % 20 == 0:
                    self.model.save_weights(self.backup)
                loss = self.step(x[i:i + batch], y[i:i + batch])
            print("epoch", epoch, "loss", loss, flush=True)


def main():
    keras.utils.set_random_seed(8)
    x, y = load_series()
    Trainer().run(x, y)


if __name__ == "__main__":
    main()
