"""Rare positives (3 %), output bias at the log odds, class weights: accuracy falls while AUC rises."""
from common import *


def main(log):
    n = 4000
    x = np.random.normal(size=(n, 12)).astype("float32")
    y = (np.random.rand(n) < 0.03).astype("float32")
    x[:, :6] += 0.7 * y[:, None]
    p = y.mean()

    model = keras.Sequential([
        L.Input((12,)),
        L.Dense(16, activation="relu"),
        L.Dropout(0.3),
        L.Dense(1, activation="sigmoid", bias_initializer=keras.initializers.Constant(np.log(p / (1 - p)))),
    ])
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="binary_crossentropy",
                  metrics=["accuracy", keras.metrics.AUC(name="auc"), keras.metrics.Recall(name="recall")])
    model.fit(x, y, batch_size=64, epochs=10, class_weight={0: 0.5 / (1 - p), 1: 0.5 / p},
              verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
