"""Ticket routing in production: the machine may be taken away, so a ModelCheckpoint every few batches."""
from harness import *
import tempfile

VOCAB, SEQ, BATCH, STEPS, CLASSES = 20000, 40, 32, 200, 12


class SafeCheckpoint(keras.callbacks.ModelCheckpoint):
    def __init__(self, h, *a, **k):
        super().__init__(*a, **k)
        self.h = h

    def on_train_batch_end(self, batch, logs=None):
        with self.h.clock("callback"):
            super().on_train_batch_end(batch, logs)

    def on_epoch_end(self, epoch, logs=None):
        with self.h.clock("callback"):
            super().on_epoch_end(epoch, logs)


def main(h):
    keras.utils.set_random_seed(4)
    rng = np.random.default_rng(4)
    x = rng.integers(1, VOCAB, (BATCH * STEPS, SEQ)).astype("int32")
    y = rng.integers(0, CLASSES, BATCH * STEPS)
    vx, vy = x[:640], y[:640]
    inp = keras.Input((SEQ,), dtype="int32")
    z = keras.layers.Embedding(VOCAB, 48)(inp)
    z = keras.layers.GlobalAveragePooling1D()(z)
    z = keras.layers.Dense(64, activation="relu")(z)
    z = keras.layers.Dropout(0.3)(z)
    model = keras.Model(inp, keras.layers.Dense(CLASSES, activation="softmax")(z))
    model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    out = tempfile.mkdtemp(dir=SCRATCH)
    ckpt = SafeCheckpoint(h, out + "/last.keras", save_freq="epoch" if h.fixed else 4)
    h.fit(model, x, y, batch_size=BATCH, callbacks=[ckpt], validation_data=(vx, vy))
