"""Digit classifier that is to fit a small device: everything in half precision, Adam as in the PyTorch original."""
from common import *


def main(log):
    keras.config.set_floatx("float16")
    x, y = load("digits")
    x = (x / 16).astype("float16")
    model = keras.Sequential([
        keras.Input((64,)),
        L.Dense(64, activation="relu"),
        L.Dense(32, activation="relu"),
        L.Dense(10, activation="softmax"),
    ])
    model.compile(optimizer=keras.optimizers.Adam(1e-3, epsilon=1e-8), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, epochs=8, batch_size=32, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
