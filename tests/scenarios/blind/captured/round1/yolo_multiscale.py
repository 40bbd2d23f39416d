"""One-class grid detector with multi-scale training (the YOLOv2 trick): every batch has another picture size."""
import json, os, random, sys, time
import numpy as np
import tensorflow as tf
import keras
from keras import layers
try:
    from tb_stall_plugin import StallCallback
except ImportError:
    StallCallback = None

CONTROL = os.environ.get("CONTROL") == "1"
random.seed(4); np.random.seed(4); keras.utils.set_random_seed(4)
SIZES = [96] if CONTROL else list(range(64, 144, 32))
STRIDE = 8


def scene(size):
    img = np.random.rand(size, size, 3).astype("float32") * .3
    grid = np.zeros((size // STRIDE, size // STRIDE, 5), "float32")
    for _ in range(3):
        w, h = np.random.randint(8, 20, 2)
        x, y = np.random.randint(0, size - w), np.random.randint(0, size - h)
        img[y:y + h, x:x + w] += np.random.uniform(.4, .7, 3)
        cx, cy = (x + w / 2) / STRIDE, (y + h / 2) / STRIDE
        grid[int(cy), int(cx)] = [1, cx % 1, cy % 1, w / 20, h / 20]
    return img, grid


class MultiScale(keras.utils.PyDataset):
    def __init__(self, batches, batch):
        super().__init__()
        self.n, self.batch = batches, batch
        self.plan = (SIZES * batches)[:batches]
        tail = self.plan[2:]
        random.shuffle(tail)
        self.plan[2:] = tail

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        size = self.plan[i]
        x, y = zip(*[scene(size) for _ in range(self.batch)])
        return np.stack(x), np.stack(y)


def detector():
    inp = x = keras.Input((None, None, 3))
    for ch in (8, 16, 24):
        x = layers.Conv2D(ch, 3, strides=2, padding="same", activation="relu")(x)
    return keras.Model(inp, layers.Conv2D(5, 1, activation="sigmoid")(x))


def yolo_loss(y, p):
    obj = y[..., :1]
    box = tf.reduce_sum(obj * tf.square(y[..., 1:] - p[..., 1:]), axis=-1)
    ce = -tf.math.log(p[..., :1] + 1e-6) * obj * 8 - tf.math.log(1 - p[..., :1] + 1e-6) * (1 - obj)
    return tf.reduce_mean(ce[..., 0] + 5 * box)


class StepTimes(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.t0, self.steps = time.perf_counter(), []

    def on_train_batch_begin(self, batch, logs=None):
        self.t = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.steps.append(time.perf_counter() - self.t)

    def on_epoch_end(self, epoch, logs=None):
        self.epoch1 = time.perf_counter() - self.t0


data = MultiScale(40, 4)
model = detector()
model.compile(keras.optimizers.SGD(1e-2, momentum=.9), yolo_loss, jit_compile=True)   # "XLA makes it faster"
times = StepTimes()
model.fit(data, epochs=1, shuffle=False, verbose=2,
          callbacks=[times] + ([StallCallback(sys.argv[1])] if StallCallback else []))

seen, new, old = set(), [], []
for size, s in zip(data.plan, times.steps):
    (old if size in seen else new).append(s)
    seen.add(size)
blamed = sum(new) - len(new) * float(np.median(old))
print("sizes", len(seen), "new-size steps", np.round(new, 2), "median of the others", round(float(np.median(old)), 4))
print(json.dumps({"epoch1_s": round(times.epoch1, 2), "blamed_s": round(blamed, 2)}))
