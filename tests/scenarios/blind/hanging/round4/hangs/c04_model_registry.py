"""Keep the last few weight snapshots on disk, file work is done by a background thread."""
import os
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np

CONTROL = os.environ.get("BLIND_CONTROL") == "1"


class SnapshotRegistry(keras.callbacks.Callback):
    def __init__(self, directory, keep=3):
        super().__init__()
        self.directory = directory
        self.keep = keep
        self.entries = []
        self.lock = threading.RLock() if CONTROL else threading.Lock()
        self.io = ThreadPoolExecutor(max_workers=1, thread_name_prefix="snapshot-io")

    def _write(self, path, weights):
        np.savez(path, *weights)
        with self.lock:
            self.entries.append(path)

    def _remove_oldest(self):
        with self.lock:
            path = self.entries.pop(0)
        os.remove(path)

    def on_epoch_end(self, epoch, logs=None):
        path = os.path.join(self.directory, "epoch_%03d.npz" % epoch)
        self.io.submit(self._write, path, self.model.get_weights()).result()
        with self.lock:
            if len(self.entries) > self.keep:
                if CONTROL:
                    self._remove_oldest()
                else:
                    self.io.submit(self._remove_oldest).result()
            print("kept snapshots:", len(self.entries), flush=True)

    def on_train_end(self, logs=None):
        self.io.shutdown()


def main():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(3000, 12)).astype("float32")
    y = np.sin(x).sum(axis=1, keepdims=True)
    model = keras.Sequential([
        keras.Input((12,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1),
    ])
    model.compile("adam", "mse")
    with tempfile.TemporaryDirectory() as directory:
        model.fit(x, y, epochs=10, batch_size=64, verbose=2,
                  callbacks=[SnapshotRegistry(directory)])
    print("training finished")


if __name__ == "__main__":
    main()
