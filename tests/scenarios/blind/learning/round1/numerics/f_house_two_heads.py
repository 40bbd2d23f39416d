"""Two heads on one trunk: the price of a house (regression) and its kind (3 classes)."""
from common import *


def houses(n=2400):
    rng = np.random.default_rng(11)
    x = rng.normal(size=(n, 8)).astype("float32")
    score = np.stack([x[:, 0] + x[:, 1], x[:, 2] - x[:, 0], x[:, 3] * 1.2 - x[:, 1]], 1)
    kind = np.argmax(score + 0.2 * rng.gumbel(size=(n, 3)), 1)
    price = 310_000 + 80_000 * x[:, 4] + 45_000 * x[:, 0] * x[:, 5] + 30_000 * (kind == 2) + 10_000 * rng.normal(size=n)
    return x, price.astype("float32"), kind.astype("int32")


def main(log):
    x, price, kind = houses()
    inp = keras.Input((8,), name="features")
    h = L.Dense(64, activation="relu")(inp)
    h = L.Dense(32, activation="relu")(h)
    out_price = L.Dense(1, name="price")(h)
    out_kind = L.Dense(3, activation="softmax", name="kind")(h)
    model = keras.Model(inp, {"price": out_price, "kind": out_kind})
    model.compile(
        # without the clipping the loss was nan after a few steps
        optimizer=keras.optimizers.SGD(0.01, momentum=0.9, global_clipnorm=1.0),
        loss={"price": "mse", "kind": "sparse_categorical_crossentropy"},
        metrics={"price": ["mae"], "kind": ["accuracy"]},
    )
    model.fit(x, {"price": price[:, None], "kind": kind}, validation_split=0.2, batch_size=32, epochs=10, verbose=0,
              callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
