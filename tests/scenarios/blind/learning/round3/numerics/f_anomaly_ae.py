"""Autoencoder for anomaly scores on standardised clinical features."""
from common import *


def main(log):
    x, y = load("cancer")
    x = standardised(x).astype("float32")
    auto = keras.Sequential([
        keras.Input((30,)),
        L.Dense(24, activation="relu"),
        L.Dense(10, activation="relu"),
        L.Dense(24, activation="relu"),
        L.Dense(30, activation="sigmoid"),
    ])
    auto.compile(optimizer=keras.optimizers.Adam(3e-3), loss="binary_crossentropy", metrics=["mse"])
    auto.fit(x, x, epochs=12, batch_size=16, shuffle=True, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
