"""Bird-call detector: 1-second crops out of long field recordings (wav), log-mel front end inside the model."""
import json, os, sys, tempfile, threading, time, wave
import numpy as np
import tensorflow as tf
import keras
from keras import layers
try:
    from tb_stall_plugin import StallCallback
except ImportError:
    StallCallback = None

CONTROL = os.environ.get("CONTROL") == "1"
NATIVE_SR, SR = 22050, 16000
CLASSES = 4
root = tempfile.mkdtemp(prefix="birds_")
rng = np.random.default_rng(7)
load_s, active, since = 0.0, 0, 0.0       # wall seconds with at least one thread in random_crop
lock = threading.Lock()


def write_recordings(minutes=2):
    """One long recording per species: chirps over noise."""
    n = NATIVE_SR * 60 * minutes
    t = np.arange(n, dtype="float32") / NATIVE_SR
    for c in range(CLASSES):
        f = 900 + 1100 * c
        y = .3 * np.sin(2 * np.pi * f * t + 8 * np.sin(2 * np.pi * 5 * t)) + .15 * rng.standard_normal(n, dtype="float32")
        with wave.open(os.path.join(root, f"species{c}.wav"), "wb") as w:
            w.setnchannels(1); w.setsampwidth(2); w.setframerate(NATIVE_SR)
            w.writeframes((np.clip(y, -1, 1) * 32767).astype("<i2").tobytes())


def resample(y, src, dst):
    grid = np.arange(0, len(y), src / dst)
    return np.interp(grid, np.arange(len(y)), y).astype("float32")


def load(path, offset=0, frames=-1):
    with wave.open(path, "rb") as w:
        w.setpos(offset)
        raw = w.readframes(w.getnframes() if frames < 0 else frames)
    return resample(np.frombuffer(raw, "<i2") / 32768.0, NATIVE_SR, SR)


def random_crop(path, seconds=1.0):
    global load_s, active, since
    with lock:
        since = since if active else time.perf_counter()
        active += 1
    path = path.decode()
    if CONTROL:
        with wave.open(path, "rb") as w:
            last = w.getnframes() - int(NATIVE_SR * seconds) - 8
        y = load(path, np.random.randint(last), int(NATIVE_SR * seconds) + 8)[:SR]
    else:
        y = load(path)
        k = np.random.randint(len(y) - SR)
        y = y[k:k + SR]
    y = y * np.float32(np.random.uniform(.5, 1.5))                 # gain augmentation
    y = np.roll(y, np.random.randint(SR))
    with lock:
        active -= 1
        load_s += 0 if active else time.perf_counter() - since
    return y.astype("float32")


def parse(path, label):
    y = tf.numpy_function(random_crop, [path], tf.float32)
    return tf.ensure_shape(y, [SR]), label


class LogMel(layers.Layer):
    def __init__(self, **kw):
        super().__init__(**kw)
        self.mel = tf.signal.linear_to_mel_weight_matrix(40, 257, SR, 60, 7600)

    def call(self, x):
        s = tf.abs(tf.signal.stft(x, 400, 160, 512))
        return tf.math.log(tf.matmul(s, self.mel) + 1e-4)[..., None]


write_recordings()
files = [os.path.join(root, f"species{i % CLASSES}.wav") for i in range(128)]
labels = [i % CLASSES for i in range(128)]
train = (tf.data.Dataset.from_tensor_slices((files, labels)).shuffle(128, seed=1)
         .map(parse, num_parallel_calls=tf.data.AUTOTUNE).batch(8).prefetch(tf.data.AUTOTUNE))

model = keras.Sequential([
    keras.Input((SR,)), LogMel(), layers.BatchNormalization(),
    layers.Conv2D(16, 3, strides=2, activation="relu"), layers.Conv2D(32, 3, strides=2, activation="relu"),
    layers.GlobalAveragePooling2D(), layers.Dense(CLASSES, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=False)


class Clock(keras.callbacks.Callback):
    def on_epoch_begin(self, e, logs=None): self.t = time.perf_counter(); self.wait = 0.; self.prev = None
    def on_train_batch_begin(self, b, logs=None):
        if self.prev: self.wait += time.perf_counter() - self.prev
    def on_train_batch_end(self, b, logs=None): self.prev = time.perf_counter()
    def on_epoch_end(self, e, logs=None):
        if e == 0: self.epoch1, self.load1 = time.perf_counter() - self.t, load_s


clock = Clock()
model.fit(train, epochs=1, verbose=2, callbacks=[clock] + ([StallCallback(sys.argv[1])] if StallCallback else []))
print("wall seconds in random_crop", round(clock.load1, 2))
print(json.dumps({"epoch1_s": round(clock.epoch1, 2), "blamed_s": round(clock.load1, 2)}))
