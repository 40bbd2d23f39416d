"""Diabetes progression with predicted uncertainty: a network with a mean and a sigma output."""
from common import *


def gaussian_nll(y_true, y_pred):
    mu, sigma = y_pred[:, :1], y_pred[:, 1:]
    return tf.reduce_mean(tf.math.log(sigma) + 0.5 * tf.square((y_true - mu) / sigma))


def main(log):
    x, y = load("diabetes")
    x, y = standardised(x).astype("float32"), standardised(y).reshape(-1, 1).astype("float32")
    inp = keras.Input((10,))
    h = L.Dense(32, activation="relu")(inp)
    h = L.Dense(16, activation="relu")(h)
    mu = L.Dense(1, name="mu")(h)
    sigma = L.Dense(1, name="sigma")(h)
    model = keras.Model(inp, L.Concatenate()([mu, sigma]))
    model.compile(keras.optimizers.Adam(2e-3), loss=gaussian_nll)
    model.fit(x, y, epochs=10, batch_size=32, validation_split=0.2, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
