"""Entity embeddings for an insurance-claims table: one embedding per categorical column
(TPS-style data, 36 anonymised categorical columns, 12 numeric ones)."""
import json
import os
import sys
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

try:
    from tb_stall_plugin import StallCallback
except ImportError:
    StallCallback = None

LOGDIR = sys.argv[1]
CONTROL = os.environ.get("CONTROL") == "1"
N_ROWS, N_CAT, N_NUM, CARD, DIM = 8_000, 36, 12, 24, 4
rng = np.random.default_rng(7)


def make_claims():
    cat = rng.integers(0, CARD, size=(N_ROWS, N_CAT)).astype("int32")
    num = rng.normal(size=(N_ROWS, N_NUM)).astype("float32")
    effect = rng.normal(size=(10, CARD))
    score = sum(effect[i][cat[:, i]] for i in range(10)) + num[:, :4].sum(axis=1)
    return cat, num, (score > np.median(score)).astype("float32")


class EntityEmbeddingNet(keras.Model):
    """The usual recipe: embed every column, drop out, concatenate, two dense layers."""

    def __init__(self, cards, dim):
        super().__init__()
        self.embs = [layers.Embedding(c, dim) for c in cards]
        self.drops = [layers.SpatialDropout1D(0.05) for _ in cards]
        self.norm = layers.BatchNormalization()
        self.d1 = layers.Dense(64, activation="relu")
        self.d2 = layers.Dense(32, activation="relu")
        self.out = layers.Dense(1, activation="sigmoid")

    def call(self, inputs, training=None):
        cat, num = inputs
        parts = []
        for i, (emb, drop) in enumerate(zip(self.embs, self.drops)):
            e = drop(emb(cat[:, i:i + 1]), training=training)
            parts.append(layers.Reshape((-1,))(e))
        x = tf.concat(parts + [self.norm(num, training=training)], axis=1)
        return self.out(self.d2(self.d1(x)))


class StackedEmbeddingNet(keras.Model):
    """Same net, all the columns in one table with an offset per column."""

    def __init__(self, cards, dim):
        super().__init__()
        self.offsets = np.concatenate([[0], np.cumsum(cards)[:-1]]).astype("int32")
        self.width = len(cards) * dim
        self.emb = layers.Embedding(int(sum(cards)), dim)
        self.drop = layers.Dropout(0.05)
        self.norm = layers.BatchNormalization()
        self.d1 = layers.Dense(64, activation="relu")
        self.d2 = layers.Dense(32, activation="relu")
        self.out = layers.Dense(1, activation="sigmoid")

    def call(self, inputs, training=None):
        cat, num = inputs
        e = self.drop(self.emb(cat + self.offsets), training=training)
        e = tf.reshape(e, (-1, self.width))
        x = tf.concat([e, self.norm(num, training=training)], axis=1)
        return self.out(self.d2(self.d1(x)))


class Clock(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 0:
            self.t0 = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        if not hasattr(self, "first"):
            self.first = time.perf_counter() - self.t0

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 0:
            self.epoch1 = time.perf_counter() - self.t0


cat, num, y = make_claims()
net = StackedEmbeddingNet if CONTROL else EntityEmbeddingNet
model = net([CARD] * N_CAT, DIM)
model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="binary_crossentropy", metrics=["accuracy"])
ds = tf.data.Dataset.from_tensor_slices(((cat, num), y)).shuffle(N_ROWS, seed=1).batch(256).prefetch(2)
clock = Clock()
callbacks = [clock] + ([StallCallback(LOGDIR)] if StallCallback else [])
model.fit(ds, epochs=2, callbacks=callbacks, verbose=2)
print(json.dumps({"epoch1_s": round(clock.epoch1, 2), "blamed_s": round(clock.first, 2)}))
