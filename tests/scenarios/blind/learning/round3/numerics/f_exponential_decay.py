"""Small convolutional net on the digits with a learning rate that decays exponentially."""
from common import *


def main(log):
    x, y = load("digits")
    x = (x / 16.0).reshape(-1, 8, 8, 1).astype("float32")

    model = keras.Sequential([
        L.Input((8, 8, 1)),
        L.Conv2D(8, 3, activation="relu"),
        L.MaxPooling2D(),
        L.Flatten(),
        L.Dense(32, activation="relu"),
        L.Dense(10, activation="softmax"),
    ])
    schedule = keras.optimizers.schedules.ExponentialDecay(1e-3, decay_steps=1, decay_rate=0.9)
    model.compile(optimizer=keras.optimizers.Adam(schedule), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, batch_size=32, epochs=10, validation_split=0.2, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
