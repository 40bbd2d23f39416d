"""Kaggle notebook: a row of callbacks, and a ModelCheckpoint that saves every few batches."""
import tempfile
from harness import *

L = keras.layers


def main(h):
    class Checkpoint(keras.callbacks.ModelCheckpoint):
        def on_train_batch_end(self, batch, logs=None):
            with h.clock("callback"):
                super().on_train_batch_end(batch, logs)

        def on_epoch_end(self, epoch, logs=None):
            with h.clock("callback"):
                super().on_epoch_end(epoch, logs)

    rng = np.random.default_rng(0)
    x = rng.random((3200, 28, 28, 1), dtype="float32")
    y = keras.utils.to_categorical(rng.integers(0, 10, 3200), 10)
    model = keras.Sequential([
        keras.Input((28, 28, 1)),
        L.Conv2D(8, 5, strides=2, padding="same", activation="relu"), L.BatchNormalization(),
        L.Conv2D(16, 3, strides=2, padding="same", activation="relu"), L.BatchNormalization(), L.Flatten(),
        L.Dense(1024, activation="relu"), L.Dropout(0.4), L.Dense(1024, activation="relu"),
        L.Dense(10, activation="softmax")])
    model.compile("rmsprop", "categorical_crossentropy", metrics=["accuracy"])
    path = os.path.join(tempfile.mkdtemp(dir=SCRATCH), "best_{epoch:02d}.keras")
    callbacks = [
        keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=3, factor=0.5, min_lr=1e-5),
        keras.callbacks.EarlyStopping(monitor="loss", patience=5),
        Checkpoint(path, save_freq="epoch" if h.fixed else 4),
    ]
    h.fit(model, x, y, callbacks=callbacks, batch_size=32)
