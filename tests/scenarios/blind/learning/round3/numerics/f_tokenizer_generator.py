"""Text classification from a generator that tokenizes the sentences."""
from collections import Counter

from common import *

GOOD = ["good%d" % i for i in range(20)]
BAD = ["bad%d" % i for i in range(20)]
OTHER = ["word%d" % i for i in range(40)]


def sentences(n):
    texts, labels = [], []
    for _ in range(n):
        label = np.random.randint(2)
        words = list(np.random.choice(GOOD if label else BAD, 5)) + list(np.random.choice(OTHER, 7))
        np.random.shuffle(words)
        texts.append(words)
        labels.append(label)
    return texts, np.array(labels, "float32")


def fit_tokenizer(texts):
    counts = Counter(w for t in texts for w in t)
    return {w: i + 1 for i, (w, _) in enumerate(counts.most_common())}


def batches(texts, labels, size):
    while True:
        order = np.random.permutation(len(texts))
        for i in range(0, len(order) - size + 1, size):
            part = [texts[k] for k in order[i:i + size]]
            index = fit_tokenizer(part)
            yield np.array([[index[w] for w in t] for t in part]), labels[order[i:i + size]]


def main(log):
    texts, labels = sentences(1600)
    model = keras.Sequential([
        L.Input((12,)),
        L.Embedding(100, 16),
        L.GlobalAveragePooling1D(),
        L.Dense(16, activation="relu"),
        L.Dense(1, activation="sigmoid"),
    ])
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="binary_crossentropy", metrics=["accuracy"])
    model.fit(batches(texts, labels, 32), steps_per_epoch=50, epochs=8, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
