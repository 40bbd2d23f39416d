"""Rare disease, four per cent positives: output bias set to the base rate, balanced class weights."""
from common import *


def make_patients(n=4000, seed=8):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 10))
    score = 1.2 * x[:, 0] + 0.9 * x[:, 1] - 0.7 * x[:, 2] + rng.normal(0, 1.0, n)
    y = (score > np.quantile(score, 0.96)).astype("int32")
    return x.astype("float32"), y


def main(log):
    x, y = make_patients()
    neg, pos = np.bincount(y)
    weights = {0: len(y) / (2.0 * neg), 1: len(y) / (2.0 * pos)}
    bias = keras.initializers.Constant(float(np.log(pos / neg)))

    model = keras.Sequential([
        keras.Input((10,)),
        L.Dense(16, activation="relu"),
        L.Dropout(0.5),
        L.Dense(1, activation="sigmoid", bias_initializer=bias),
    ])
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="binary_crossentropy",
                  metrics=["accuracy", keras.metrics.Recall(name="recall"), keras.metrics.AUC(name="auc")])
    model.fit(x[:3200], y[:3200], validation_data=(x[3200:], y[3200:]), epochs=10, batch_size=64,
              class_weight=weights, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
