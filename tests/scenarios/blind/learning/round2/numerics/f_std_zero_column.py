"""Digits, z-scored by hand with the training mean and std, then a small dense net."""
from common import *


def main(log):
    x, y = load("digits")
    x = x.astype("float32")
    x_train, x_test, y_train, y_test = x[:1400], x[1400:], y[:1400], y[1400:]

    mean = x_train.mean(axis=0)
    std = x_train.std(axis=0)
    x_train = (x_train - mean) / std
    x_test = (x_test - mean) / std

    y_train = keras.utils.to_categorical(y_train, 10)
    y_test = keras.utils.to_categorical(y_test, 10)

    model = keras.Sequential([
        keras.Input((64,)),
        L.Dense(64, activation="relu"),
        L.Dropout(0.2),
        L.Dense(32, activation="relu"),
        L.Dense(10, activation="softmax"),
    ])
    model.compile(optimizer="adam", loss="categorical_crossentropy", metrics=["accuracy"])
    model.fit(x_train, y_train, validation_data=(x_test, y_test), epochs=6, batch_size=32,
              verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
