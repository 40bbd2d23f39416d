"""Checkpoints are written by a background thread, so that training needn't wait for the disk."""
import os
import queue
import tempfile
import threading

import keras
import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"


class AsyncCheckpoint(keras.callbacks.Callback):
    def __init__(self, pattern):
        super().__init__()
        self.pattern = pattern
        self.jobs = queue.Queue()
        self.thread = threading.Thread(target=self._write_loop, name="ckpt-writer", daemon=True)
        self.thread.start()

    def _write_loop(self):
        while True:
            epoch, weights, logs = self.jobs.get()
            path = self.pattern.format(epoch=epoch, **logs)
            np.savez(path, *weights)
            self.jobs.task_done()

    def on_epoch_end(self, epoch, logs=None):
        self.jobs.put((epoch, self.model.get_weights(), dict(logs or {})))

    def flush(self):
        self.jobs.join()


def main():
    keras.utils.set_random_seed(5)
    x = np.random.rand(2000, 20).astype("float32")
    y = (x[:, 0] > x[:, 1]).astype("int32")
    model = keras.Sequential([
        keras.Input((20,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(2, activation="softmax"),
    ])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])

    out = tempfile.mkdtemp(prefix="ckpt_")
    ckpt = AsyncCheckpoint(os.path.join(out, "e{epoch:03d}-{val_loss:.3f}.npz"))
    # validating every other epoch is enough
    model.fit(x, y, validation_split=0.2, validation_freq=1 if CONTROL else 2,
              epochs=6, batch_size=50, callbacks=[ckpt], verbose=2)
    ckpt.flush()
    print("checkpoints:", sorted(os.listdir(out)))


if __name__ == "__main__":
    main()
