"""Breast cancer table through tf.data: features and labels zipped, a subclassed dense model."""
from common import *


class Classifier(keras.Model):
    def __init__(self):
        super().__init__()
        self.d1 = L.Dense(32, activation="relu")
        self.d2 = L.Dense(16, activation="relu")
        self.out = L.Dense(1, activation="sigmoid")

    def call(self, x):
        return self.out(self.d2(self.d1(x)))


def main(log):
    x, y = load("cancer")
    x = standardised(x).astype("float32")
    y = y.reshape(-1, 1).astype("float32")

    features = tf.data.Dataset.from_tensor_slices(x[:450]).shuffle(450)
    labels = tf.data.Dataset.from_tensor_slices(y[:450]).shuffle(450)
    train = tf.data.Dataset.zip((features, labels)).batch(16).prefetch(2)
    val = tf.data.Dataset.from_tensor_slices((x[450:], y[450:])).batch(32)

    model = Classifier()
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="binary_crossentropy", metrics=["accuracy"])
    model.fit(train, validation_data=val, epochs=10, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
