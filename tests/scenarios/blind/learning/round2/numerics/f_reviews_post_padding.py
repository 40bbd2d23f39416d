"""Short reviews as word ids, padded to a fixed length, Embedding and LSTM for the sentiment."""
from common import *

MAXLEN = 120


def make_reviews(n=1000, seed=11):
    rng = np.random.default_rng(seed)
    good, bad = np.arange(1, 21), np.arange(21, 41)
    texts, labels = [], []
    for _ in range(n):
        label = rng.integers(0, 2)
        words = rng.integers(41, 400, rng.integers(5, 12))
        k = rng.integers(2, 5)
        words[rng.choice(len(words), k, replace=False)] = rng.choice(good if label else bad, k)
        texts.append(words.tolist())
        labels.append(label)
    return texts, np.array(labels)


def main(log):
    texts, y = make_reviews()
    x = keras.utils.pad_sequences(texts, maxlen=MAXLEN, padding="post")

    model = keras.Sequential([
        keras.Input((MAXLEN,)),
        L.Embedding(400, 16),
        L.LSTM(16),
        L.Dense(1, activation="sigmoid"),
    ])
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="binary_crossentropy", metrics=["accuracy"])
    model.fit(x, y, validation_split=0.2, epochs=6, batch_size=32, verbose=0,
              callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
