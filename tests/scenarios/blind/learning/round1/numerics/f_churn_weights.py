"""Who will cancel? Imbalanced classes (6 % positive), class weights from the counts."""
from common import *


def customers(n, rng):
    y = (rng.random(n) < 0.06).astype("int32")
    x = rng.normal(size=(n, 16)).astype("float32")
    x[:, :5] += 0.9 * y[:, None]
    x[:, 5] = x[:, 5] * (1 + 0.8 * y)
    return x, y


def main(log):
    rng = np.random.default_rng(11)
    x, y = customers(4000, rng)
    xv, yv = customers(1500, rng)

    counts = np.bincount(y)
    class_weight = {c: counts[c] / len(y) for c in range(2)}

    inp = keras.Input((16,))
    h = L.Dense(32, activation="relu")(inp)
    h = L.Dropout(0.2)(h)
    h = L.Dense(16, activation="relu")(h)
    out = L.Dense(1, activation="sigmoid")(h)
    model = keras.Model(inp, out)
    model.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy",
                  metrics=["accuracy", keras.metrics.Precision(name="precision"), keras.metrics.Recall(name="recall")])
    model.fit(x, y, batch_size=100, epochs=8, class_weight=class_weight, validation_data=(xv, yv),
              verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
