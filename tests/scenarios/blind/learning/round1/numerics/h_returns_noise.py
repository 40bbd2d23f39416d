"""Stock returns from factors: almost all noise; a strongly regularised net that finds the small signal."""
from common import *


def panel(n=12000):
    rng = np.random.default_rng(21)
    x = rng.normal(size=(n, 12)).astype("float32")
    signal = 0.12 * x[:, 0] - 0.10 * x[:, 3] + 0.10 * np.tanh(x[:, 5] * 2) + 0.06 * x[:, 7] * x[:, 8]
    noise = rng.standard_t(4, size=n) / np.sqrt(2)
    return x, (signal + noise).astype("float32")[:, None]


def ic(y_true, y_pred):
    """Correlation of forecast and return."""
    a = y_true - tf.reduce_mean(y_true)
    b = y_pred - tf.reduce_mean(y_pred)
    return tf.reduce_sum(a * b) / (tf.norm(a) * tf.norm(b) + 1e-9)


def main(log):
    x, y = panel()
    reg = keras.regularizers.L2(1e-3)
    model = keras.Sequential([
        keras.Input((12,)),
        L.Dense(32, activation="relu", kernel_regularizer=reg),
        L.Dropout(0.5),
        L.Dense(16, activation="relu", kernel_regularizer=reg),
        L.Dropout(0.3),
        L.Dense(1, kernel_initializer="zeros"),
    ])
    model.compile(keras.optimizers.Adam(1e-3), loss="mse", metrics=[ic])
    model.fit(x[:9000], y[:9000], validation_data=(x[9000:], y[9000:]), batch_size=128, epochs=10, verbose=0,
              callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
