"""Fine-tuning with a tiny rate: a trained digit net, mostly frozen, is adapted to noisy, paler scans."""
from common import *


def main(log):
    x, y = load("digits")
    x = (x.reshape(-1, 8, 8, 1) / 16).astype("float32")
    rng = np.random.default_rng(6)
    base = keras.Sequential([
        keras.Input((8, 8, 1)),
        L.Conv2D(24, 3, padding="same"), L.BatchNormalization(), L.ReLU(),
        L.MaxPooling2D(), L.Conv2D(48, 3, padding="same", activation="relu"), L.Flatten(),
    ])
    head = keras.Sequential([keras.Input((768,)), L.Dropout(0.4), L.Dense(10, activation="softmax")])
    model = keras.Sequential([base, head])
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(x[:900], y[:900], epochs=6, batch_size=32, verbose=0)

    pale = (0.6 * x + 0.3 + 0.15 * rng.normal(size=x.shape)).astype("float32")
    base.trainable = False
    inp = keras.Input((8, 8, 1))
    tuned = keras.Model(inp, head(base(inp, training=False)))
    tuned.compile(keras.optimizers.Adam(5e-5), "sparse_categorical_crossentropy", metrics=["accuracy"])
    tuned.fit(pale[:1400], y[:1400], epochs=10, batch_size=16, validation_data=(pale[1400:], y[1400:]), verbose=0,
              callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
