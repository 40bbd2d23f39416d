"""Digits as 8x8 pictures, a small CNN, the rate reduced when the validation accuracy stalls."""
from common import *


def main(log):
    x, y = load("digits")
    x = (x / 16.0).reshape(-1, 8, 8, 1).astype("float32")

    inputs = keras.Input((8, 8, 1))
    h = L.Conv2D(16, 3, activation="relu")(inputs)
    h = L.MaxPooling2D()(h)
    h = L.Flatten()(h)
    h = L.Dense(32, activation="relu")(h)
    outputs = L.Dense(10, activation="softmax")(h)
    model = keras.Model(inputs, outputs)
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="sparse_categorical_crossentropy",
                  metrics=["accuracy"])

    reduce_lr = keras.callbacks.ReduceLROnPlateau(monitor="val_accuracy", mode="min", factor=0.1, patience=1)
    model.fit(x[:1400], y[:1400], validation_data=(x[1400:], y[1400:]), epochs=12, batch_size=64,
              verbose=0, callbacks=[reduce_lr] + log.callbacks())


if __name__ == "__main__":
    run(main)
