"""Day-ahead electricity load: dilated causal convolutions (TCN), own loop with clipped gradients.
Healthy: vectorised windows, one trace, prefetching; it just computes."""
import json
import os
import sys
import time

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

try:
    from watched import watch
except ImportError:
    watch = lambda it, logdir: it  # noqa: E731

logdir = sys.argv[1]
CONTROL = os.environ.get("CONTROL") == "1"      # nothing to repair: CONTROL is the same net with a quarter of the filters
FILTERS = 16 if CONTROL else 64
PAST, AHEAD, BATCH, STEPS = 336, 24, 64, 110
rng = np.random.default_rng(0)


def load_series(hours=24 * 365):
    t = np.arange(hours)
    day = np.sin(2 * np.pi * t / 24) + 0.4 * np.sin(4 * np.pi * t / 24 + 1)
    week = 0.5 * (t // 24 % 7 < 5)
    year = np.cos(2 * np.pi * t / 8760)
    s = 3 + day * (1 + 0.3 * week) + week + year + 0.1 * rng.normal(size=hours)
    s = (s - s.mean()) / s.std()
    return np.stack([s, np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24), week], 1).astype("float32")


series = load_series()
windows = np.lib.stride_tricks.sliding_window_view(series, PAST + AHEAD, axis=0).transpose(0, 2, 1)
starts = rng.permutation(len(windows))[:STEPS * BATCH]
X = np.ascontiguousarray(windows[starts, :PAST])
Y = np.ascontiguousarray(windows[starts, PAST:, 0])


def tcn():
    inp = tf.keras.Input((PAST, series.shape[1]))
    x = layers.Conv1D(FILTERS, 1)(inp)
    for d in (1, 4, 16, 64):
        h = layers.Conv1D(FILTERS, 3, padding="causal", dilation_rate=d, activation="relu")(x)
        h = layers.Conv1D(FILTERS, 1)(h)
        x = layers.Add()([x, h])
    return tf.keras.Model(inp, layers.Dense(AHEAD)(x[:, -1]))


model = tcn()
opt = tf.keras.optimizers.Adam(1e-3)
opt.build(model.trainable_variables)


@tf.function
def step_fn(x, y):
    with tf.GradientTape() as tape:
        pred = model(x, training=True)
        loss = tf.reduce_mean(tf.abs(pred - y))
    g = tape.gradient(loss, model.trainable_variables)
    g, _ = tf.clip_by_global_norm(g, 1.0)
    opt.apply_gradients(zip(g, model.trainable_variables))
    return loss


ds = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(1024).batch(BATCH, drop_remainder=True).prefetch(2)
running, durations = [], []
t0 = time.perf_counter()
t100 = None
for i, (x, y) in enumerate(watch(ds, logdir)):
    t = time.perf_counter()
    loss = float(step_fn(x, y))
    durations.append(time.perf_counter() - t)
    running.append(loss)
    if i == 99:
        t100 = time.perf_counter() - t0
    if i % 30 == 0:
        print(f"step {i:4d}  mae {np.mean(running[-30:]):.3f}")
print("total", round(time.perf_counter() - t0, 2), "last mae", round(float(np.mean(running[-20:])), 3))
print(json.dumps({"epoch1_s": round(t100, 2), "blamed_s": round(float(np.median(durations)) * 100, 2),
                  "first_step_s": round(durations[0], 2)}))
