"""Sentiment of short reviews, padded to one length, with an LSTM."""
from common import *


def reviews(n):
    texts, labels = [], []
    for _ in range(n):
        label = np.random.randint(2)
        words = list(np.random.randint(41, 200, np.random.randint(4, 9)))
        good, bad = np.random.randint(1, 21, 4), np.random.randint(21, 41, 4)
        words += list(good if label else bad)
        np.random.shuffle(words)
        texts.append(words)
        labels.append(label)
    return texts, np.array(labels)


def main(log):
    texts, y = reviews(800)
    x = keras.utils.pad_sequences(texts, maxlen=150, padding="post")

    model = keras.Sequential([
        L.Input((150,)),
        L.Embedding(200, 16),
        L.LSTM(16),
        L.Dense(1, activation="sigmoid"),
    ])
    model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="binary_crossentropy", metrics=["accuracy"])
    model.fit(x, y, batch_size=32, epochs=6, validation_split=0.2, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
