"""Product-review sentiment with a one-block transformer encoder (healthy: the model is simply big for a CPU)."""
import json
import os
import sys
import time

import numpy as np
import keras
from keras import layers, ops

try:
    from tb_stall_plugin import StallCallback
except ImportError:
    StallCallback = None

CONTROL = os.environ.get("CONTROL") == "1"     # nothing to repair: CONTROL runs a model of a quarter of the width
MAXLEN, VOCAB = 128, 8000
WIDTH, HEADS, FF = (40, 4, 160) if CONTROL else (160, 4, 640)
keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)


def reviews(n):
    y = rng.integers(0, 2, n)
    x = rng.integers(200, VOCAB, (n, MAXLEN))
    hot = rng.random((n, MAXLEN)) < 0.12
    x = np.where(hot, rng.integers(0, 100, (n, MAXLEN)) + 100 * y[:, None], x)
    return x.astype("int32"), y.astype("float32")


class TokenAndPosition(layers.Layer):
    def __init__(self, width):
        super().__init__()
        self.tok = layers.Embedding(VOCAB, width)
        self.pos = layers.Embedding(MAXLEN, width)

    def call(self, x):
        return self.tok(x) + self.pos(ops.arange(0, MAXLEN, 1))


def encoder_block(x):
    a = layers.MultiHeadAttention(HEADS, WIDTH // HEADS, dropout=0.1)(x, x)
    x = layers.LayerNormalization(epsilon=1e-6)(x + a)
    f = layers.Dense(FF, activation="gelu")(x)
    f = layers.Dropout(0.1)(layers.Dense(WIDTH)(f))
    return layers.LayerNormalization(epsilon=1e-6)(x + f)


def build():
    inp = keras.Input((MAXLEN,), dtype="int32")
    x = TokenAndPosition(WIDTH)(inp)
    x = encoder_block(x)
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dense(32, activation="relu")(layers.Dropout(0.1)(x))
    return keras.Model(inp, layers.Dense(1, activation="sigmoid")(x))


class Clock(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.steps = []

    def on_epoch_begin(self, epoch, logs=None):
        self.t0 = time.perf_counter()

    def on_train_batch_begin(self, batch, logs=None):
        self.t = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.steps.append(time.perf_counter() - self.t)

    def on_epoch_end(self, epoch, logs=None):
        self.epoch1 = time.perf_counter() - self.t0


x_train, y_train = reviews(1920)
x_val, y_val = reviews(256)
model = build()
model.compile(optimizer=keras.optimizers.Adam(5e-4), loss="binary_crossentropy", metrics=["accuracy"])
clock = Clock()
callbacks = [clock] + ([StallCallback(sys.argv[1])] if StallCallback else [])
model.fit(x_train, y_train, batch_size=32, epochs=1, validation_data=(x_val, y_val), callbacks=callbacks, verbose=2)
blamed = float(np.median(clock.steps)) * len(clock.steps)
print(json.dumps({"epoch1_s": round(clock.epoch1, 2), "blamed_s": round(blamed, 2),
                  "first_step_s": round(clock.steps[0], 2)}))
