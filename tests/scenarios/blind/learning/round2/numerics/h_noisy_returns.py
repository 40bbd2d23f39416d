"""Next day's return from the last ten, mostly noise: Conv1D regression with a directional metric."""
from common import *


def make_series(n=4000, seed=21):
    rng = np.random.default_rng(seed)
    r = np.zeros(n)
    for t in range(2, n):
        r[t] = 0.25 * r[t - 1] - 0.2 * r[t - 2] + rng.standard_t(4)
    return r / r.std()


def direction(y_true, y_pred):
    return tf.reduce_mean(tf.cast(tf.sign(y_true) == tf.sign(y_pred), tf.float32))


def main(log):
    r = make_series()
    x = np.lib.stride_tricks.sliding_window_view(r[:-1], 10)[..., None].astype("float32")
    y = r[10:].reshape(-1, 1).astype("float32")
    cut = 3000

    inputs = keras.Input((10, 1))
    h = L.Conv1D(8, 3, activation="relu")(inputs)
    h = L.Flatten()(h)
    h = L.Dense(8, activation="relu")(h)
    model = keras.Model(inputs, L.Dense(1, kernel_initializer="zeros")(h))
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", metrics=[direction])
    model.fit(x[:cut], y[:cut], validation_data=(x[cut:], y[cut:]), epochs=8, batch_size=32,
              verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
