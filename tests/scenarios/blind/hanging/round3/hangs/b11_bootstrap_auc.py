"""Classifier with a bootstrapped confidence interval of the AUC after the middle epoch."""
import time

import keras
import numpy as np
import tensorflow as tf


def auc(labels, scores):
    order = np.argsort(scores, kind="mergesort")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    pos = labels.sum()
    return (ranks[labels == 1].sum() - pos * (pos + 1) / 2) / (pos * (len(labels) - pos))


class BootstrapAUC(keras.callbacks.Callback):
    def __init__(self, x, y, at_epoch, rounds):
        super().__init__()
        self.x, self.y = x, y
        self.at_epoch = at_epoch
        self.rounds = rounds

    def on_epoch_end(self, epoch, logs=None):
        if epoch != self.at_epoch:
            return
        began = time.time()
        scores = self.model.predict(self.x, batch_size=512, verbose=0)[:, 0]
        rng = np.random.default_rng(0)
        values = []
        for _ in range(self.rounds):
            pick = rng.integers(0, len(scores), len(scores))
            values.append(auc(self.y[pick], scores[pick]))
        low, high = np.percentile(values, [2.5, 97.5])
        print("AUC 95%% interval %.4f - %.4f (%.1fs)" % (low, high, time.time() - began), flush=True)


def main():
    keras.utils.set_random_seed(12)
    x = np.random.rand(20000, 16).astype("float32")
    y = (x[:, 0] + 0.5 * np.random.rand(20000) > 0.75).astype("int32")
    model = keras.Sequential([
        keras.Input((16,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ])
    model.compile("adam", "binary_crossentropy")
    model.fit(x, y, epochs=7, batch_size=64, verbose=2, callbacks=[BootstrapAUC(x, y, at_epoch=3, rounds=6000)])
    print("saved nothing, done")


if __name__ == "__main__":
    main()
