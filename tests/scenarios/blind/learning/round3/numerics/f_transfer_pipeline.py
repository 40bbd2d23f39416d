"""Transfer learning: a small convnet trained on the digits 0-4 is frozen and gets a new head for 5-9."""
from common import *


def main(log):
    x, y = load("digits")
    x = (x.reshape(-1, 8, 8, 1) * (255 / 16)).astype("uint8")
    old, new = y < 5, y >= 5

    base = keras.Sequential([
        keras.Input((8, 8, 1)),
        L.Rescaling(1 / 255),
        L.Conv2D(16, 3, padding="same", activation="relu"),
        L.MaxPooling2D(),
        L.Conv2D(32, 3, padding="same", activation="relu"),
        L.Flatten(),
    ])
    first = keras.Sequential([base, L.Dense(5, activation="softmax")])
    first.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    first.fit(x[old].astype("float32"), y[old], epochs=5, batch_size=32, verbose=0)

    base.trainable = False
    ds = tf.data.Dataset.from_tensor_slices((x[new], y[new] - 5)).shuffle(1000, seed=1)
    ds = ds.map(lambda a, b: (tf.cast(a, tf.float32) / 255.0, b)).batch(32)
    inp = keras.Input((8, 8, 1))
    h = L.Dropout(0.2)(base(inp, training=False))
    model = keras.Model(inp, L.Dense(5, activation="softmax")(h))
    model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(ds, epochs=8, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
