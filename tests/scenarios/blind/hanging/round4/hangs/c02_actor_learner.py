"""Learner fed by an actor thread: transitions go through a queue into tf.data."""
import os
import queue
import threading

import keras
import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"
OBS = 16
BATCH = 32
MAX_AHEAD = 512
SHUFFLE = 256 if CONTROL else 2048


class Actor(threading.Thread):
    """Plays episodes, but never runs too far ahead of the learner."""

    def __init__(self):
        super().__init__(name="actor", daemon=True)
        self.transitions = queue.Queue()
        self.cond = threading.Condition()
        self.produced = 0
        self.consumed = 0
        self.rng = np.random.default_rng(0)

    def learned(self, n):
        with self.cond:
            self.consumed += n
            self.cond.notify_all()

    def run(self):
        while True:
            with self.cond:
                while self.produced - self.consumed >= MAX_AHEAD:
                    self.cond.wait()
                self.produced += 1
            obs = self.rng.normal(size=OBS).astype("float32")
            value = np.float32(obs[:4].sum())
            self.transitions.put((obs, value))


class ReportProgress(keras.callbacks.Callback):
    def __init__(self, actor):
        super().__init__()
        self.actor = actor

    def on_train_batch_end(self, batch, logs=None):
        self.actor.learned(BATCH)


def main():
    actor = Actor()
    actor.start()

    def replay():
        while True:
            obs, value = actor.transitions.get()
            yield obs, value

    ds = tf.data.Dataset.from_generator(
        replay,
        output_signature=(
            tf.TensorSpec((OBS,), tf.float32),
            tf.TensorSpec((), tf.float32),
        ),
    )
    ds = ds.shuffle(SHUFFLE).batch(BATCH).prefetch(1)

    model = keras.Sequential([
        keras.Input((OBS,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1),
    ])
    model.compile("adam", "mse")
    model.fit(ds, steps_per_epoch=100, epochs=3, verbose=2,
              callbacks=[ReportProgress(actor)])
    print("done, transitions produced:", actor.produced)


if __name__ == "__main__":
    main()
