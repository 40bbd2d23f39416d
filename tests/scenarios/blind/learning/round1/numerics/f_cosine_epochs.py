"""Regression of hourly power demand with a cosine learning-rate schedule."""
from common import *

EPOCHS = 12


def demand(n=3000):
    rng = np.random.default_rng(5)
    hour, day = rng.integers(0, 24, n), rng.integers(0, 7, n)
    temp, wind, cloud = rng.normal(12, 8, n), rng.gamma(2.0, 2.0, n), rng.random(n)
    load_mw = (40 + 12 * np.sin((hour - 7) / 24 * 2 * np.pi) + 0.06 * (temp - 16) ** 2
               - 7 * (day >= 5) + 0.5 * wind * cloud + rng.normal(0, 1.5, n))
    x = np.stack([np.sin(hour / 24 * 2 * np.pi), np.cos(hour / 24 * 2 * np.pi), (day >= 5), temp, wind, cloud], 1)
    return standardised(x).astype("float32"), standardised(load_mw).astype("float32")


def main(log):
    x, y = demand()
    model = keras.Sequential([
        keras.Input((6,)),
        L.Dense(64, activation="relu"),
        L.Dense(32, activation="relu"),
        L.Dense(1),
    ])
    schedule = keras.optimizers.schedules.CosineDecay(1e-3, decay_steps=EPOCHS)
    model.compile(optimizer=keras.optimizers.Adam(schedule), loss="mse", metrics=["mae"])
    model.fit(x, y[:, None], validation_split=0.2, batch_size=32, epochs=EPOCHS, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
