"""Recommender: matrix factorisation of ratings with user and item embeddings and a dot product."""
from common import *

N_USERS, N_ITEMS, RANK = 200, 120, 16


def make_ratings(n=9000):
    rng = np.random.default_rng(3)
    taste = rng.normal(size=(N_USERS, 3))
    genre = rng.normal(size=(N_ITEMS, 3))
    u = rng.integers(0, N_USERS, n)
    i = rng.integers(0, N_ITEMS, n)
    r = 3.2 + 0.7 * (taste[u] * genre[i]).sum(1) + 0.2 * rng.normal(size=n)
    return u.astype("int32"), i.astype("int32"), np.clip(r, 0.5, 6).astype("float32")


def build():
    user = keras.Input((), dtype="int32", name="user")
    item = keras.Input((), dtype="int32", name="item")
    reg = keras.regularizers.L2(1e-6)
    p = L.Embedding(N_USERS, RANK, embeddings_initializer="zeros", embeddings_regularizer=reg, name="user_factors")(user)
    q = L.Embedding(N_ITEMS, RANK, embeddings_initializer="zeros", embeddings_regularizer=reg, name="item_factors")(item)
    return keras.Model([user, item], L.Dot(axes=-1, name="affinity")([p, q]))


def main(log):
    u, i, r = make_ratings()
    r = r - r[:8000].mean()
    model = build()
    model.compile(keras.optimizers.Adam(0.01), loss="mse", metrics=["mae"])
    model.fit([u[:8000], i[:8000]], r[:8000, None], validation_data=([u[8000:], i[8000:]], r[8000:, None]),
              batch_size=128, epochs=10, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
