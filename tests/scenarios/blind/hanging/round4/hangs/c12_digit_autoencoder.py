"""Autoencoder with a custom loop, background metric logging and checkpoints."""
import json
import os
import queue
import tempfile
import threading

import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"
EPOCHS = 3 if CONTROL else 400
BATCH = 64

tf.config.threading.set_intra_op_parallelism_threads(1)


class JsonLogger:
    """Writes records in the background, so that the loop never waits for the disk."""

    def __init__(self, path):
        self.path = path
        self.records = queue.Queue()
        self.thread = threading.Thread(target=self._run, name="json-logger", daemon=True)
        self.thread.start()

    def _run(self):
        with open(self.path, "a") as f:
            while True:
                record = self.records.get()
                if record is None:
                    return
                f.write(json.dumps(record) + "\n")
                f.flush()

    def log(self, **record):
        self.records.put(record)

    def close(self):
        self.records.put(None)
        self.thread.join()


class Autoencoder(tf.Module):
    def __init__(self):
        super().__init__()
        self.enc = tf.Variable(tf.random.normal((196, 64), stddev=0.05, seed=1))
        self.dec = tf.Variable(tf.random.normal((64, 196), stddev=0.05, seed=2))
        self.bias = tf.Variable(tf.zeros((196,)))

    def __call__(self, x):
        return tf.matmul(tf.nn.relu(tf.matmul(x, self.enc)), self.dec) + self.bias


def main():
    rng = np.random.default_rng(6)
    basis = rng.normal(size=(12, 196)).astype("float32")
    data = rng.normal(size=(64 * 900, 12)).astype("float32") @ basis / 4
    val = rng.normal(size=(64 * 20, 12)).astype("float32") @ basis / 4
    data += rng.normal(scale=0.1, size=data.shape).astype("float32")
    val += rng.normal(scale=0.1, size=val.shape).astype("float32")
    train_ds = tf.data.Dataset.from_tensor_slices(data).shuffle(4096).batch(BATCH).prefetch(2)
    val_ds = tf.data.Dataset.from_tensor_slices(val).batch(BATCH)

    model = Autoencoder()
    directory = tempfile.mkdtemp(prefix="autoenc_")
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(model=model), directory, max_to_keep=2)
    logger = JsonLogger(os.path.join(directory, "metrics.jsonl"))

    @tf.function
    def train_step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - x))
        variables = model.trainable_variables
        for v, g in zip(variables, tape.gradient(loss, variables)):
            v.assign_sub(0.5 * g)
        return loss

    @tf.function
    def val_step(x):
        return tf.reduce_mean(tf.square(model(x) - x))

    for epoch in range(EPOCHS):
        losses = [float(train_step(x)) for x in train_ds]
        val_loss = np.mean([float(val_step(x)) for x in val_ds])
        logger.log(epoch=epoch, loss=float(np.mean(losses)), val_loss=float(val_loss))
        if epoch % 5 == 0:
            manager.save()
        print("epoch %3d/%d loss %.5f val_loss %.5f"
              % (epoch + 1, EPOCHS, np.mean(losses), val_loss), flush=True)
    logger.close()


if __name__ == "__main__":
    main()
