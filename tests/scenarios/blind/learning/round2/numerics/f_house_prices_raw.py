"""House prices in dollars from five scaled features, dense regression with mse."""
from common import *


def r2(y_true, y_pred):
    y_true = tf.cast(y_true, tf.float32)
    res = tf.reduce_sum(tf.square(y_true - y_pred))
    tot = tf.reduce_sum(tf.square(y_true - tf.reduce_mean(y_true)))
    return 1.0 - res / (tot + 1e-7)


def make_houses(n=1500, seed=3):
    rng = np.random.default_rng(seed)
    area = rng.gamma(6, 25, n)
    rooms = np.clip(np.round(area / 35 + rng.normal(0, 1, n)), 1, 9)
    age = rng.uniform(0, 80, n)
    dist = rng.exponential(8, n)
    quality = rng.integers(1, 11, n)
    price = 40000 + 1500 * area + 9000 * rooms - 700 * age - 2500 * dist + 12000 * quality
    price = np.clip(price + rng.normal(0, 20000, n), 30000, None)
    return np.stack([area, rooms, age, dist, quality], 1), price


def main(log):
    x, price = make_houses()
    x = standardised(x).astype("float32")
    y = price.astype("float32")

    model = keras.Sequential([
        keras.Input((5,)),
        L.Dense(32, activation="relu"),
        L.Dense(16, activation="relu"),
        L.Dense(1),
    ])
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae", r2])
    early = keras.callbacks.EarlyStopping(monitor="val_loss", patience=5)
    model.fit(x, y, validation_split=0.2, epochs=10, batch_size=32, verbose=0,
              callbacks=[early] + log.callbacks())


if __name__ == "__main__":
    run(main)
