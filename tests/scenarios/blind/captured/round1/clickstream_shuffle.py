"""CTR model on click logs in CSV shards, tf.data pipeline as in the company's cookbook:
read -> parse -> features -> shuffle -> batch -> prefetch."""
import json
import os
import sys
import tempfile
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras

try:
    from tb_stall_plugin import StallCallback
except ImportError:
    StallCallback = None

CONTROL = os.environ.get("CONTROL") == "1"
ROWS, SHARDS, BATCH, STEPS = 40_000, 4, 128, 100
rng = np.random.default_rng(42)
folder = tempfile.mkdtemp(prefix="clicks_")


def write_shards():
    bias = rng.normal(size=500)
    for s in range(SHARDS):
        n = ROWS // SHARDS
        ad = rng.integers(0, 500, n)
        user = rng.integers(0, 5000, n)
        hour = rng.integers(0, 24, n)
        price = rng.gamma(2.0, 3.0, n)
        p = 1 / (1 + np.exp(-(2 * bias[ad] - 0.1 * price)))
        click = (rng.random(n) < p).astype(int)
        with open(os.path.join(folder, f"part-{s:05d}.csv"), "w") as f:
            f.write("click,ad,user,hour,price,query\n")
            for row in zip(click, ad, user, hour, price):
                f.write("%d,ad_%d,u_%d,%d,%.3f,buy cheap item %d now\n" % (row + (row[1] % 97,)))


DEFAULTS = [[0], [""], [""], [0], [0.0], [""]]


def parse(line):
    click, ad, user, hour, price, query = tf.io.decode_csv(line, DEFAULTS)
    words = tf.strings.split([tf.strings.regex_replace(query, "[^a-z0-9 ]", "")]).to_tensor(shape=(1, 6))[0]
    feats = {
        "ad": tf.strings.to_hash_bucket_fast(ad, 1000),
        "user": tf.strings.to_hash_bucket_fast(user, 8000),
        "cross": tf.strings.to_hash_bucket_fast(tf.strings.join([ad, tf.strings.as_string(hour)], "_x_"), 8000),
        "query": tf.strings.to_hash_bucket_fast(words, 1000),
        "numbers": tf.stack([tf.math.log1p(price), tf.cast(hour, tf.float32) / 24.0]),
    }
    return feats, click


def pipeline():
    files = tf.data.Dataset.list_files(folder + "/*.csv", shuffle=True, seed=1)
    lines = files.interleave(lambda f: tf.data.TextLineDataset(f).skip(1), cycle_length=SHARDS)
    if CONTROL:                      # a small buffer is plenty: the shards are interleaved already
        lines = lines.shuffle(2_000)
        return lines.map(parse, num_parallel_calls=2).repeat().batch(BATCH).prefetch(2)
    # "buffer_size should be >= the size of the data set for a perfect shuffle"
    return lines.map(parse, num_parallel_calls=2).repeat().shuffle(200_000).batch(BATCH).prefetch(2)


def build():
    ins, parts = {}, []
    for name, size, length in (("ad", 1000, ()), ("user", 8000, ()), ("cross", 8000, ()), ("query", 1000, (6,))):
        ins[name] = keras.Input(length, dtype="int64", name=name)
        e = keras.layers.Embedding(size, 8)(ins[name])
        parts.append(keras.layers.GlobalAveragePooling1D()(e) if length else e)
    ins["numbers"] = keras.Input((2,), name="numbers")
    x = keras.layers.Concatenate()(parts + [ins["numbers"]])
    for width in (64, 32):
        x = keras.layers.Dense(width, activation="relu")(x)
    return keras.Model(ins, keras.layers.Dense(1, activation="sigmoid")(x))


class Clock(keras.callbacks.Callback):
    first = epoch1 = None

    def on_epoch_begin(self, epoch, logs=None):
        self.t0 = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.first = self.first or time.perf_counter() - self.t0

    def on_epoch_end(self, epoch, logs=None):
        self.epoch1 = self.epoch1 or time.perf_counter() - self.t0


write_shards()
model = build()
model.compile(keras.optimizers.Adam(3e-3), "binary_crossentropy", metrics=["AUC"])
clock = Clock()
cbs = [clock] + ([StallCallback(sys.argv[1])] if StallCallback else [])
model.fit(pipeline(), steps_per_epoch=STEPS, epochs=1, callbacks=cbs, verbose=2)
print(json.dumps({"epoch1_s": round(clock.epoch1, 2), "blamed_s": round(clock.first, 2)}))
