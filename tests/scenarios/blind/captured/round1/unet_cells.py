"""Cell segmentation with a small U-Net, Dice + BCE, augmentation in numpy, CSV log; Kaggle-notebook style."""
import csv, json, os, sys, tempfile, time
import numpy as np
import tensorflow as tf
import keras
from keras import layers
try:
    from tb_stall_plugin import StallCallback
except ImportError:
    StallCallback = None

CONTROL = os.environ.get("CONTROL") == "1"     # healthy: the fixed form is the program itself
OUT = tempfile.mkdtemp(prefix="cells_")
SEED, IMG, BATCH = 42, 128, 8
keras.utils.set_random_seed(SEED)
rng = np.random.default_rng(SEED)
gen_s = 0.0


def make_cells(n):
    X, Y = np.empty((n, IMG, IMG, 1), "float32"), np.zeros((n, IMG, IMG, 1), "float32")
    yy, xx = np.mgrid[:IMG, :IMG]
    for i in range(n):
        for _ in range(rng.integers(4, 10)):
            cx, cy, a, b = *rng.uniform(10, IMG - 10, 2), *rng.uniform(5, 16, 2)
            Y[i, ..., 0] = np.maximum(Y[i, ..., 0], ((xx - cx) / a) ** 2 + ((yy - cy) / b) ** 2 < 1)
        X[i] = .25 + .4 * Y[i] + rng.normal(0, .15, (IMG, IMG, 1))
    return X, Y


def augment(x, y):
    if rng.random() < .5:
        x, y = x[:, ::-1], y[:, ::-1]
    k = rng.integers(4)
    x, y = np.rot90(x, k), np.rot90(y, k)
    x = x * rng.uniform(.8, 1.2) + rng.uniform(-.1, .1)         # contrast, brightness
    return x.astype("float32"), y


def train_generator(X, Y):
    global gen_s
    while True:
        order = rng.permutation(len(X))
        for i in range(0, len(X) - BATCH + 1, BATCH):
            t = time.perf_counter()
            pairs = [augment(X[j], Y[j]) for j in order[i:i + BATCH]]
            bx, by = map(np.stack, zip(*pairs))
            gen_s += time.perf_counter() - t
            yield bx, by


def double_conv(x, f):
    for _ in range(2):
        x = layers.Conv2D(f, 3, padding="same", activation="relu", kernel_initializer="he_normal")(x)
    return x


def unet(base=16):
    inp = keras.Input((IMG, IMG, 1))
    skips, x = [], inp
    for f in (base, base * 2, base * 4):
        x = double_conv(x, f)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = double_conv(x, base * 8)
    for f, s in zip((base * 4, base * 2, base), reversed(skips)):
        x = layers.Conv2DTranspose(f, 2, strides=2, padding="same")(x)
        x = double_conv(layers.Concatenate()([x, s]), f)
    return keras.Model(inp, layers.Conv2D(1, 1, activation="sigmoid")(x))


def dice(y, p):
    inter = tf.reduce_sum(y * p, axis=(1, 2, 3))
    return tf.reduce_mean((2 * inter + 1) / (tf.reduce_sum(y, axis=(1, 2, 3)) + tf.reduce_sum(p, axis=(1, 2, 3)) + 1))


def bce_dice(y, p):
    return tf.reduce_mean(keras.losses.binary_crossentropy(y, p)) + 1 - dice(y, p)


class CSVStep(keras.callbacks.Callback):
    def __init__(self, path):
        super().__init__()
        self.w = csv.writer(open(path, "w", newline=""))
        self.steps = []

    def on_epoch_begin(self, epoch, logs=None):
        self.t0 = time.perf_counter()

    def on_train_batch_begin(self, batch, logs=None):
        self.t = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.steps.append(time.perf_counter() - self.t)
        self.w.writerow([batch, logs["loss"], logs["dice"]])

    def on_epoch_end(self, epoch, logs=None):
        self.epoch1 = time.perf_counter() - self.t0


X, Y = make_cells(240)
model = unet()
model.compile(keras.optimizers.Adam(2e-3), bce_dice, metrics=[dice], jit_compile=False)
log = CSVStep(os.path.join(OUT, "steps.csv"))
h = model.fit(train_generator(X, Y), steps_per_epoch=len(X) // BATCH, epochs=1, verbose=2,
              callbacks=[log] + ([StallCallback(sys.argv[1])] if StallCallback else []))
print("first step", round(log.steps[0], 2), "python augmentation", round(gen_s, 2), h.history)
print(json.dumps({"epoch1_s": round(log.epoch1, 2), "blamed_s": round(sum(log.steps[1:]), 2)}))
