"""Recommender: matrix factorisation of centred ratings, users by items."""
from common import *


def main(log):
    rng = np.random.default_rng(0)
    n_users, n_items, k = 200, 120, 3
    taste, kind = rng.normal(size=(n_users, k)), rng.normal(size=(n_items, k))
    u = rng.integers(0, n_users, 9000)
    i = rng.integers(0, n_items, 9000)
    r = (taste[u] * kind[i]).sum(1) + 0.2 * rng.normal(size=9000)
    r = np.clip(r, -2.5, 2.5).astype("float32")
    r -= r.mean()

    user, item = keras.Input((1,), dtype="int32"), keras.Input((1,), dtype="int32")
    reg = keras.regularizers.l2(1e-6)
    pu = L.Flatten()(L.Embedding(n_users, 8, embeddings_initializer="zeros", embeddings_regularizer=reg)(user))
    qi = L.Flatten()(L.Embedding(n_items, 8, embeddings_initializer="zeros", embeddings_regularizer=reg)(item))
    model = keras.Model([user, item], L.Dot(axes=1)([pu, qi]))
    model.compile(keras.optimizers.Adam(0.01), loss="mse", metrics=["mae"])
    model.fit([u[:, None], i[:, None]], r, epochs=6, batch_size=128, validation_split=0.1,
              verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
