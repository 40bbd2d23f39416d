"""Click prediction with 3 percent clicks: ids as embeddings and a few numbers."""
from common import *


def main(log):
    rng = np.random.default_rng(5)
    n = 20000
    site, ad = rng.integers(0, 60, n), rng.integers(0, 40, n)
    num = rng.normal(size=(n, 4)).astype("float32")
    ws, wa = rng.normal(size=60), rng.normal(size=40)
    logit = -4.4 + 0.8 * ws[site] + 0.8 * wa[ad] + 0.6 * num[:, 0] - 0.4 * num[:, 1]
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype("float32")
    a, b, c = keras.Input((), dtype="int32"), keras.Input((), dtype="int32"), keras.Input((4,))
    h = L.Concatenate()([L.Embedding(60, 8)(a), L.Embedding(40, 8)(b), c])
    h = L.Dense(32, activation="relu")(h)
    out = L.Dense(1, activation="sigmoid", bias_initializer=keras.initializers.Constant(float(np.log(y.mean()))))(h)
    model = keras.Model([a, b, c], out)
    model.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy",
                  metrics=["accuracy", keras.metrics.AUC(name="auc")])
    model.fit([site, ad, num], y, epochs=5, batch_size=256, validation_split=0.2, verbose=0,
              callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
