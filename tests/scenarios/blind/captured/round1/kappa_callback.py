"""Essay grading (features already extracted): Kaggle notebook with the competition metric,
quadratic weighted kappa, tracked during the epoch so that the best weights can be kept."""
import json
import os
import sys
import time

import numpy as np
from tensorflow import keras

try:
    from tb_stall_plugin import StallCallback
except ImportError:
    StallCallback = None

CONTROL = os.environ.get("CONTROL") == "1"
np.random.seed(2019)

# ------------------------------------------------------------------ data
N_FEAT, N_GRADES = 120, 6
W_TRUE = np.random.randn(N_FEAT)
X = np.random.randn(14000, N_FEAT).astype("float32")
raw = X @ W_TRUE + 2.0 * np.random.randn(len(X))
y = np.digitize(raw, np.quantile(raw, [0.1, 0.3, 0.55, 0.8, 0.95])).astype("float32")
X_tr, y_tr, X_va, y_va = X[:10000], y[:10000], X[10000:], y[10000:]


# ------------------------------------------------------------------ metric (copied from the forum)
def qwk(a, b, n=N_GRADES):
    conf = [[0] * n for _ in range(n)]
    for i, j in zip(a, b):
        conf[int(i)][int(j)] += 1
    hist_a = [sum(r) for r in conf]
    hist_b = [sum(conf[i][j] for i in range(n)) for j in range(n)]
    num = den = 0.0
    for i in range(n):
        for j in range(n):
            w = (i - j) ** 2 / (n - 1) ** 2
            num += w * conf[i][j]
            den += w * hist_a[i] * hist_b[j] / len(a)
    return 1 - num / den


def best_thresholds(pred, truth):
    """Greedy search for the cut points that maximise kappa."""
    cuts = [0.5, 1.5, 2.5, 3.5, 4.5]
    best = -1.0
    for k in range(len(cuts)):
        for delta in (-0.3, -0.2, -0.1, 0.1, 0.2, 0.3):
            trial = list(cuts)
            trial[k] += delta
            trial.sort()
            score = qwk(np.digitize(pred, trial), truth)
            if score > best:
                best, cuts = score, trial
    return best, cuts


class KappaKeeper(keras.callbacks.Callback):
    def __init__(self, every):
        super().__init__()
        self.every, self.best, self.spent = every, -1.0, 0.0

    def check(self):
        t = time.perf_counter()
        pred = self.model(X_va, training=False).numpy()[:, 0]
        score, cuts = best_thresholds(pred, y_va)
        if score > self.best:
            self.best, self.weights = score, self.model.get_weights()
        self.spent += time.perf_counter() - t

    def on_epoch_begin(self, epoch, logs=None):
        self.t0 = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        if self.every and (batch + 1) % self.every == 0:
            self.check()

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 0:
            self.epoch1, self.spent1 = time.perf_counter() - self.t0, self.spent


model = keras.Sequential([
    keras.Input((N_FEAT,)),
    keras.layers.BatchNormalization(),
    keras.layers.Dense(128, activation="swish"),
    keras.layers.Dropout(0.2),
    keras.layers.Dense(64, activation="swish"),
    keras.layers.Dense(1),
])
model.compile(optimizer="adam", loss="mse")
keeper = KappaKeeper(every=0 if CONTROL else 2)
cbs = [keeper] + ([StallCallback(sys.argv[1])] if StallCallback else [])
model.fit(X_tr, y_tr, batch_size=64, epochs=1, callbacks=cbs, verbose=2)
keeper.check()
print("kappa", keeper.best)
print(json.dumps({"epoch1_s": round(keeper.epoch1, 2), "blamed_s": round(keeper.spent1, 2)}))
