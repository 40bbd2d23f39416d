"""Fraud table with six per cent positives, class weights from the class counts, recall and AUC watched."""
from common import *


def make_fraud(n=3000, seed=5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 8))
    score = 1.3 * x[:, 0] - 1.0 * x[:, 1] + 0.8 * x[:, 2] * x[:, 3] + rng.normal(0, 0.7, n)
    y = (score > np.quantile(score, 0.94)).astype("int32")
    return x.astype("float32"), y


def main(log):
    x, y = make_fraud()
    counts = np.bincount(y)
    class_weight = {i: c / counts.sum() for i, c in enumerate(counts)}

    model = keras.Sequential([
        keras.Input((8,)),
        L.Dense(32, activation="relu"),
        L.Dropout(0.3),
        L.Dense(16, activation="relu"),
        L.Dense(1, activation="sigmoid"),
    ])
    model.compile(optimizer="adam", loss="binary_crossentropy",
                  metrics=["accuracy", keras.metrics.Recall(name="recall"), keras.metrics.AUC(name="auc")])
    model.fit(x[:2400], y[:2400], validation_data=(x[2400:], y[2400:]), epochs=8, batch_size=64,
              class_weight=class_weight, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
