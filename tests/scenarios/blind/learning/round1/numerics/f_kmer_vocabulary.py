"""Promoter or not: k-mers of DNA through TextVectorization, a small Conv1D classifier, tf.data."""
import itertools

from common import *

K = 4


def make_sequences(n, rng):
    bases = np.array(list("ACGT"))
    texts, labels = [], []
    for _ in range(n):
        seq = "".join(rng.choice(bases, 60))
        label = int(rng.random() < 0.5)
        if label:
            at = rng.integers(0, 60 - 7)
            seq = seq[:at] + "TATAAAA" + seq[at + 7:]
        texts.append(" ".join(seq[i:i + K] for i in range(len(seq) - K + 1)))
        labels.append(label)
    return np.array(texts), np.array(labels, "float32")


def main(log):
    rng = np.random.default_rng(3)
    texts, labels = make_sequences(2000, rng)

    kmers = ["".join(p) for p in itertools.product("ACGT", repeat=K)]
    vectorize = L.TextVectorization(vocabulary=kmers, output_sequence_length=57)

    def dataset(a, b, training):
        ds = tf.data.Dataset.from_tensor_slices((texts[a:b], labels[a:b]))
        if training:
            ds = ds.shuffle(2000, seed=1)
        ds = ds.batch(40).map(lambda t, y: (vectorize(t), y))
        return ds.cache().prefetch(2)

    model = keras.Sequential([
        keras.Input((57,), dtype="int64"),
        L.Embedding(len(kmers) + 2, 16),
        L.Conv1D(32, 5, activation="relu"),
        L.GlobalMaxPooling1D(),
        L.Dense(32, activation="relu"),
        L.Dense(1, activation="sigmoid"),
    ])
    model.compile(keras.optimizers.Adam(2e-3), "binary_crossentropy", metrics=["accuracy"])
    model.fit(dataset(0, 1600, True), validation_data=dataset(1600, 2000, False),
              epochs=6, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
