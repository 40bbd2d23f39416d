"""Regression that predicts mean and spread; the negative log likelihood goes below zero."""
from common import *


def nll(y, out):
    mean, log_sigma = out[:, :1], out[:, 1:]
    y = tf.reshape(tf.cast(y, tf.float32), (-1, 1))
    return tf.reduce_mean(log_sigma + 0.5 * tf.square((y - mean) * tf.exp(-log_sigma)))


def mae(y, out):
    return tf.reduce_mean(tf.abs(tf.reshape(tf.cast(y, tf.float32), (-1, 1)) - out[:, :1]))


def main(log):
    x = np.random.uniform(-2, 2, (2000, 1)).astype("float32")
    sigma = 0.02 + 0.05 * np.abs(x)
    y = (np.sin(2 * x) + sigma * np.random.normal(size=x.shape)).astype("float32")

    inp = L.Input((1,))
    h = L.Dense(64, activation="tanh")(inp)
    h = L.Dense(64, activation="tanh")(h)
    model = keras.Model(inp, L.Dense(2)(h))
    model.compile(optimizer=keras.optimizers.Adam(5e-3), loss=nll, metrics=[mae])
    model.fit(x, y, batch_size=32, epochs=12, validation_split=0.2, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
