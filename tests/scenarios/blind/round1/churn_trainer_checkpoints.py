"""A production trainer for churn: resumes anywhere, so it saves the whole model all the time."""
import glob

from harness import *


class SafeCheckpoint(keras.callbacks.Callback):
    """Keeps the last three models; preemptible machines may go away."""

    def __init__(self, folder, every, h):
        super().__init__()
        self.folder, self.every, self.h = folder, every, h
        self.seen = 0
        self.history = []

    def save(self, logs):
        with self.h.clock("callback"):
            self.model.save(os.path.join(self.folder, f"model-{self.seen:06d}.keras"))
            self.history.append({k: float(v) for k, v in (logs or {}).items()})
            with open(os.path.join(self.folder, "history.json"), "w") as f:
                json.dump(self.history, f)
            for old in sorted(glob.glob(os.path.join(self.folder, "model-*.keras")))[:-3]:
                os.remove(old)

    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        if self.every and self.seen % self.every == 0:
            self.save(logs)

    def on_epoch_end(self, epoch, logs=None):
        if not self.every:
            self.save(logs)


def main(h):
    rng = np.random.default_rng(3)
    n, batch = 38400, 128
    customer = rng.integers(0, 12000, n).astype("int32")
    usage = rng.random((n, 24)).astype("float32")
    left = (usage[:, :3].sum(axis=1) + rng.normal(0, 0.3, n) > 1.6).astype("float32")
    ds = (
        tf.data.Dataset.from_tensor_slices(({"customer": customer, "usage": usage}, left))
        .batch(batch)
        .cache()
        .prefetch(tf.data.AUTOTUNE)
    )

    c = keras.Input((), dtype="int32", name="customer")
    u = keras.Input((24,), name="usage")
    x = keras.layers.Concatenate()([keras.layers.Embedding(12000, 24)(c), u])
    for units in (64, 32):
        x = keras.layers.Dense(units, activation="relu")(x)
    out = keras.layers.Dense(1, activation="sigmoid", name="left")(x)
    model = keras.Model({"customer": c, "usage": u}, out)
    model.compile(keras.optimizers.Adam(), "binary_crossentropy", metrics=["AUC"])

    folder = tempfile.mkdtemp(dir=SCRATCH)
    h.fit(model, ds, callbacks=[SafeCheckpoint(folder, None if h.fixed else 3, h)])
