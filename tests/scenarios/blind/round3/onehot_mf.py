"""Ratings by matrix factorization, the beginner's way: one-hot ids into Dense layers."""
from harness import *

USERS, MOVIES, K = 20000, 12000, 32


def main(h):
    rng = np.random.default_rng(4)
    n = 512 * 100
    x = np.stack([rng.integers(0, USERS, n), rng.integers(0, MOVIES, n)], 1).astype("int32")
    y = (1 + (x.sum(1) % 9) / 2).astype("float32")

    inp = keras.Input((2,), dtype="int32")
    if h.fixed:
        u = keras.layers.Embedding(USERS, K)(inp[:, 0])
        m = keras.layers.Embedding(MOVIES, K)(inp[:, 1])
    else:
        u = keras.layers.CategoryEncoding(USERS, output_mode="one_hot")(inp[:, 0:1])
        u = keras.layers.Dense(K, use_bias=False)(u)
        m = keras.layers.CategoryEncoding(MOVIES, output_mode="one_hot")(inp[:, 1:2])
        m = keras.layers.Dense(K, use_bias=False)(m)
    z = keras.layers.Concatenate()([u, m, keras.layers.Multiply()([u, m])])
    z = keras.layers.Dense(32, activation="relu")(z)
    model = keras.Model(inp, keras.layers.Dense(1)(z))
    model.compile(optimizer="adam", loss="mse", metrics=["mae"])
    h.fit(model, x, y, batch_size=512)
