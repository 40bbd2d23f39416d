"""Who survives? A first Kaggle notebook: scaled columns, a small net, batch_size=1."""
from harness import *


def main(h):
    rng = np.random.default_rng(42)
    n = 4000
    pclass = rng.integers(1, 4, n)
    sex = rng.integers(0, 2, n)
    age = np.clip(rng.normal(30, 14, n), 0.5, 80)
    sibsp = rng.poisson(0.5, n)
    parch = rng.poisson(0.4, n)
    fare = rng.lognormal(3, 1, n) / pclass
    y = (2.5 * sex - 0.9 * pclass - 0.02 * age + rng.logistic(0, 1, n) > -0.9).astype("float32")
    X = np.stack([pclass, sex, age, sibsp, parch, fare], axis=1).astype("float32")
    X = (X - X.mean(axis=0)) / X.std(axis=0)

    model = keras.models.Sequential()
    model.add(keras.Input(shape=(6,)))
    model.add(keras.layers.Dense(16, activation="relu"))
    model.add(keras.layers.Dense(8, activation="relu"))
    model.add(keras.layers.Dense(1, activation="sigmoid"))
    extra = {"steps_per_execution": 20} if h.fixed else {}
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"], **extra)
    h.fit(model, X, y, batch_size=1)
