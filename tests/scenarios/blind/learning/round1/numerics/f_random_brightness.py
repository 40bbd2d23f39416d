"""Digit images, scaled to 0..1, with the augmentation layers of Keras at the head of the model."""
from common import *


def main(log):
    x, y = load("digits")
    x = (x / 16.0).astype("float32").reshape(-1, 8, 8, 1)
    y = keras.utils.to_categorical(y, 10)
    order = np.random.default_rng(1).permutation(len(x))
    x, y = x[order], y[order]

    augmentation = keras.Sequential([
        L.RandomTranslation(0.1, 0.1),
        L.RandomRotation(0.03),
        L.RandomBrightness(0.2),
    ], name="augmentation")

    model = keras.Sequential([
        keras.Input((8, 8, 1)),
        augmentation,
        L.Conv2D(16, 3, padding="same", activation="relu"),
        L.MaxPooling2D(),
        L.Conv2D(32, 3, padding="same", activation="relu"),
        L.Flatten(),
        L.Dense(64, activation="relu"),
        L.Dropout(0.2),
        L.Dense(10, activation="softmax"),
    ])
    model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
    model.fit(x[:1400], y[:1400], validation_data=(x[1400:], y[1400:]), batch_size=50, epochs=6,
              verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
