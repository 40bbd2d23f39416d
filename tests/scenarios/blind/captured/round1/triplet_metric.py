"""Metric learning (batch-hard triplets) for re-identification on synthetic textures; custom train_step."""
import json, os, sys, time
import numpy as np
import tensorflow as tf
import keras
from keras import layers
try:
    from tb_stall_plugin import StallCallback
except ImportError:
    StallCallback = None

CONTROL = os.environ.get("CONTROL") == "1"
keras.utils.set_random_seed(11)
rng = np.random.default_rng(11)
IDS, P, K = 24, 8, 4            # identities; P identities x K pictures in a batch


def picture(identity):
    yy, xx = np.mgrid[0:40, 0:40] / 40.
    a = np.pi * identity / IDS
    wave = np.sin((4 + identity % 5 * 3) * (xx * np.cos(a) + yy * np.sin(a)) * np.pi + rng.uniform(0, 6.28))
    img = np.repeat(wave[..., None], 3, -1)
    return (img + rng.normal(0, 1.5, (40, 40, 3))).astype("float32")


bank = np.stack([[picture(i) for _ in range(20)] for i in range(IDS)])


def pk_batches(n):
    for _ in range(n):
        ids = rng.choice(IDS, P, replace=False)
        x = np.concatenate([bank[i][rng.choice(16, K, replace=False)] for i in ids])
        yield x, np.repeat(ids, K).astype("int32")


def pairwise_distance(e):
    d2 = tf.reduce_sum(tf.square(e[:, None, :] - e[None, :, :]), -1)
    return tf.sqrt(d2 + 1e-6)


def batch_hard(e, y, margin=.3):
    d = pairwise_distance(e)
    same = tf.equal(y[:, None], y[None, :])
    hardest_pos = tf.reduce_max(tf.where(same, d, 0.), 1)
    hardest_neg = tf.reduce_min(tf.where(same, 1e3, d), 1)
    return tf.reduce_mean(tf.nn.relu(hardest_pos - hardest_neg + margin))


class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up to the peak, then constant."""
    def __init__(self, peak, steps):
        self.peak, self.steps = peak, steps

    def __call__(self, step):
        if CONTROL:
            return self.peak * tf.minimum(tf.cast(step, tf.float32) / self.steps, 1.)
        return self.peak * tf.cast(tf.minimum(step // self.steps, 1), tf.float32)


class TripletModel(keras.Model):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.loss_mean = keras.metrics.Mean("loss")

    def call(self, x, training=False):
        return self.backbone(x, training=training)

    @property
    def metrics(self):
        return [self.loss_mean]

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = batch_hard(self(x, training=True), y)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.loss_mean.update_state(loss)
        return {"loss": self.loss_mean.result()}


def rank1(model):
    g = model.predict(bank[:, :16].reshape(-1, 40, 40, 3), verbose=0)
    q = model.predict(bank[:, 16:].reshape(-1, 40, 40, 3), verbose=0)
    return float(np.mean((q @ g.T).argmax(1) // 16 == np.arange(len(q)) // 4))


class Clock(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None): self.t = time.perf_counter()
    def on_epoch_end(self, epoch, logs=None):
        if epoch == 0: self.epoch1 = time.perf_counter() - self.t


backbone = keras.Sequential([
    keras.Input((40, 40, 3)), layers.Conv2D(32, 5, padding="same", activation="relu"), layers.MaxPooling2D(),
    layers.Conv2D(48, 3, padding="same", activation="relu"), layers.MaxPooling2D(),
    layers.Conv2D(64, 3, padding="same", activation="relu"), layers.GlobalAveragePooling2D(),
    layers.Dense(32), layers.UnitNormalization()])
model = TripletModel(backbone)
model.compile(optimizer=keras.optimizers.Adam(WarmUp(1e-3, 200)), jit_compile=False)
spec = (tf.TensorSpec((P * K, 40, 40, 3)), tf.TensorSpec((P * K,), tf.int32))
train = tf.data.Dataset.from_generator(lambda: pk_batches(60), output_signature=spec).prefetch(4)
clock, before = Clock(), rank1(model)
w0 = [w.copy() for w in model.get_weights()]
h = model.fit(train, epochs=2, verbose=2, callbacks=[clock] + ([StallCallback(sys.argv[1])] if StallCallback else []))
moved = max(float(np.abs(a - b).max()) for a, b in zip(w0, backbone.get_weights()))
print("rank-1 before", before, "after", rank1(model), "loss", h.history["loss"], "largest weight change", moved)
print(json.dumps({"epoch1_s": round(clock.epoch1, 2), "blamed_s": 0.0}))
