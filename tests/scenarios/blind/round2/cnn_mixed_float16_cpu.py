"""Kaggle notebook with mixed_float16 switched on, on a machine without a GPU."""
from harness import *


def main(h):
    keras.mixed_precision.set_global_policy("float32" if h.fixed else "mixed_float16")
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (32 * 50, 48, 48, 3)).astype("float32")
    y = rng.integers(0, 5, len(x))
    model = keras.Sequential(
        [
            keras.Input((48, 48, 3)),
            keras.layers.Conv2D(24, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(5),
            keras.layers.Activation("softmax", dtype="float32"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    h.fit(model, x, y, batch_size=32)
