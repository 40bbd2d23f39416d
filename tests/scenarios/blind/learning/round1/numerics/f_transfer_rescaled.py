"""Transfer learning: a base trained on the digits 0-4, frozen, with a new head for the digits 5-9."""
from common import *


def pretrained_base(x, y):
    """As keras.applications' EfficientNet: takes pixels of 0..255 and scales them itself."""
    inp = keras.Input((8, 8, 1))
    h = L.Rescaling(1.0 / 255)(inp)
    h = L.Conv2D(32, 3, padding="same", activation="relu")(h)
    h = L.Conv2D(48, 3, padding="same", activation="relu")(h)
    h = L.MaxPooling2D()(h)
    h = L.Conv2D(64, 3, activation="relu")(h)
    base = keras.Model(inp, h, name="base")
    pre = keras.Sequential([base, L.Flatten(), L.Dense(5, activation="softmax")])
    pre.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy")
    pre.fit(x, y, batch_size=32, epochs=4, verbose=0)
    return base


def batches(x, y, size, rng):
    while True:
        order = rng.permutation(len(x))
        for i in range(0, len(x) - size + 1, size):
            pick = order[i:i + size]
            yield x[pick] / 255.0, y[pick]


def main(log):
    x, y = load("digits")
    x = np.round(x * (255.0 / 16)).astype("uint8").astype("float32").reshape(-1, 8, 8, 1)
    y = y.astype("int32")
    source, target = y < 5, y >= 5
    base = pretrained_base(x[source], y[source])
    base.trainable = False

    xt, yt = x[target], y[target] - 5
    n = 700
    inp = keras.Input((8, 8, 1))
    h = base(inp, training=False)
    h = L.GlobalAveragePooling2D()(h)
    h = L.Dropout(0.2)(h)
    model = keras.Model(inp, L.Dense(5, activation="softmax")(h))
    model.compile(keras.optimizers.Adam(5e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(batches(xt[:n], yt[:n], 25, np.random.default_rng(0)), steps_per_epoch=28, epochs=9,
              validation_data=(xt[n:] / 255.0, yt[n:]), verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
