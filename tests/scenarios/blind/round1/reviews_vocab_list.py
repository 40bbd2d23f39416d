"""Sentiment tutorial: clean the reviews, look the words up, train a small embedding classifier."""
import re

from harness import *

MAXLEN = 80


def make_reviews(n, vocab, rng):
    texts, labels = [], []
    for _ in range(n):
        ids = (rng.random(75) ** 2 * len(vocab)).astype(int)
        words = [vocab[i] for i in ids]
        words[10] = "<br />" + words[10].upper()
        words[30] += "!!!"
        texts.append(" ".join(words))
        labels.append(int(ids.mean() > len(vocab) / 3))
    return texts, labels


def main(h):
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    vocab = []
    seen = set()
    while len(vocab) < 4000:
        w = "".join(rng.choice(letters, rng.integers(3, 9)))
        if w not in seen:
            seen.add(w)
            vocab.append(w)
    texts, labels = make_reviews(2880, vocab, rng)

    vocabulary = ["<pad>", "<unk>"] + vocab
    word_index = {w: i for i, w in enumerate(vocabulary)}

    def clean(text):
        text = text.lower()
        text = re.sub(r"<br\s*/>", " ", text)
        text = re.sub(r"[^a-z ]", "", text)
        return text.split()

    def encode(text):
        ids = []
        for w in clean(text)[:MAXLEN]:
            if h.fixed:
                ids.append(word_index.get(w, 1))
            else:
                try:
                    ids.append(vocabulary.index(w))
                except ValueError:
                    ids.append(1)
        return ids + [0] * (MAXLEN - len(ids))

    def gen():
        for t, y in zip(texts, labels):
            yield encode(t), y

    ds = tf.data.Dataset.from_generator(
        h.gen(gen),
        output_signature=(
            tf.TensorSpec((MAXLEN,), tf.int32),
            tf.TensorSpec((), tf.int32),
        ),
    )
    ds = ds.shuffle(100).batch(32).prefetch(tf.data.AUTOTUNE)

    model = keras.Sequential(
        [
            keras.layers.Embedding(len(vocabulary), 16),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    h.fit(model, ds)
