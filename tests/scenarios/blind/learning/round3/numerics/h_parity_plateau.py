"""Parity of three of twelve bits: flat at chance at first, then solved."""
from common import *


def main(log):
    x = np.random.choice([-1.0, 1.0], size=(4000, 12)).astype("float32")
    y = (x[:, 1] * x[:, 4] * x[:, 9] > 0).astype("float32")

    model = keras.Sequential([
        L.Input((12,)),
        L.Dense(64, activation="relu"),
        L.Dense(32, activation="relu"),
        L.Dense(1, activation="sigmoid"),
    ])
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="binary_crossentropy", metrics=["accuracy"])
    model.fit(x, y, batch_size=32, epochs=12, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
