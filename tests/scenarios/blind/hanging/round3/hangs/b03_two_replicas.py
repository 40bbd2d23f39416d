"""Home-made data parallel training: two threads, gradients averaged at a rendezvous."""
import os
import threading

import keras
import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"
REPLICAS = 2
BATCH = 10
EPOCHS = 3


class Averager:
    """Every replica drops its gradients here; the last one to come applies the mean."""

    def __init__(self, model, optimizer, parties):
        self.model = model
        self.optimizer = optimizer
        self.slots = [None] * parties
        self.steps = 0
        self.rendezvous = threading.Barrier(parties, action=self._apply)

    def _apply(self):
        mean = [tf.add_n(list(gs)) / len(self.slots) for gs in zip(*self.slots)]
        self.optimizer.apply_gradients(zip(mean, self.model.trainable_variables))
        self.steps += 1

    def push(self, rank, grads):
        self.slots[rank] = grads
        self.rendezvous.wait()


def replica(rank, model, averager, x, y):
    loss_fn = keras.losses.MeanSquaredError()
    for epoch in range(EPOCHS):
        order = np.random.default_rng(epoch).permutation(len(x))
        for start in range(0, len(x), BATCH):
            idx = order[start:start + BATCH]
            with tf.GradientTape() as tape:
                loss = loss_fn(y[idx], model(x[idx], training=True))
            grads = tape.gradient(loss, model.trainable_variables)
            averager.push(rank, grads)
        if rank == 0:
            print("epoch", epoch, "loss", float(loss), flush=True)


def main():
    keras.utils.set_random_seed(1)
    n = 400 if CONTROL else 401
    x = np.random.rand(n, 12).astype("float32")
    y = x.sum(axis=1, keepdims=True)
    model = keras.Sequential([keras.Input((12,)), keras.layers.Dense(32, activation="tanh"), keras.layers.Dense(1)])
    optimizer = keras.optimizers.Adam(1e-2)
    optimizer.build(model.trainable_variables)
    averager = Averager(model, optimizer, REPLICAS)

    threads = []
    for rank, (xs, ys) in enumerate(zip(np.array_split(x, REPLICAS), np.array_split(y, REPLICAS))):
        t = threading.Thread(target=replica, args=(rank, model, averager, xs, ys), name="replica-%d" % rank)
        t.start()
        threads.append(t)
    for t in threads:
        t.join()
    print("done after", averager.steps, "steps")


if __name__ == "__main__":
    main()
