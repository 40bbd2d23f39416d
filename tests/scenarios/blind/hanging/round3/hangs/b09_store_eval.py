"""Samples live in one memory-mapped store that a collector may append to, so it has a lock."""
import contextlib
import os
import tempfile
import threading

import keras
import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"
DIM = 32


class Store:
    def __init__(self, n):
        self.lock = threading.Lock()
        path = os.path.join(tempfile.mkdtemp(prefix="store_"), "samples.dat")
        self.data = np.memmap(path, dtype="float32", mode="w+", shape=(n, DIM + 1))
        self.data[:] = np.random.rand(n, DIM + 1)
        self.size = n

    def get(self, i):
        with self.lock:
            row = np.array(self.data[i])
        return row[:DIM], row[DIM:]

    def frozen(self):
        """No appending while this is held."""
        return contextlib.nullcontext() if CONTROL else self.lock

    def dataset(self, first, last):
        def rows():
            for i in range(first, last):
                yield self.get(i)
        spec = (tf.TensorSpec((DIM,), tf.float32), tf.TensorSpec((1,), tf.float32))
        return tf.data.Dataset.from_generator(rows, output_signature=spec).batch(25)


class Holdout(keras.callbacks.Callback):
    def __init__(self, store, first):
        super().__init__()
        self.store = store
        self.first = first

    def on_epoch_end(self, epoch, logs=None):
        with self.store.frozen():
            holdout = self.store.dataset(self.first, self.store.size)
            loss = self.model.evaluate(holdout, verbose=0)
        print("epoch %d holdout loss %.4f" % (epoch, loss), flush=True)


def main():
    keras.utils.set_random_seed(6)
    store = Store(1000)
    model = keras.Sequential([keras.Input((DIM,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(store.dataset(0, 800).prefetch(4), epochs=3, verbose=2, callbacks=[Holdout(store, 800)])


if __name__ == "__main__":
    main()
