"""Stream layer weights to a small monitor process during training."""
import json
import multiprocessing
import os
import socket

import keras
import numpy as np

CONTROL = os.environ.get("BLIND_CONTROL") == "1"


def serve_monitor(listener):
    listener.settimeout(60)
    conn, _ = listener.accept()
    listener.close()
    conn.settimeout(None)
    stream = conn.makefile("rb")
    for line in stream:
        record = json.loads(line)
        record["norm"] = float(np.linalg.norm(record["weights"]))
        conn.sendall(json.dumps(record).encode() + b"\n")
    conn.close()


class WeightMonitor(keras.callbacks.Callback):
    def __init__(self, address):
        super().__init__()
        self.sock = socket.create_connection(address)
        self.replies = self.sock.makefile("rb")

    def on_train_batch_end(self, batch, logs=None):
        weights = self.model.layers[0].get_weights()[0]
        record = {"batch": batch, "loss": float(logs["loss"]),
                  "weights": [round(float(v), 6) for v in weights.ravel()]}
        self.sock.sendall(json.dumps(record).encode() + b"\n")
        if CONTROL:
            self.replies.readline()

    def on_train_end(self, logs=None):
        self.replies.close()
        self.sock.close()


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    monitor = multiprocessing.get_context("fork").Process(
        target=serve_monitor, args=(listener,), daemon=True)
    monitor.start()
    listener.close()

    rng = np.random.default_rng(5)
    x = rng.normal(size=(32 * 100, 100)).astype("float32")
    y = x[:, :3].sum(axis=1, keepdims=True)
    model = keras.Sequential([
        keras.Input((100,)),
        keras.layers.Dense(200, activation="relu"),
        keras.layers.Dense(1),
    ])
    model.compile("adam", "mse")
    model.fit(x, y, batch_size=32, epochs=1 if CONTROL else 3, verbose=2,
              callbacks=[WeightMonitor(address)])
    monitor.join(10)
    print("training finished")


if __name__ == "__main__":
    main()
