"""Sentiment notebook: my own tokenizer, mapped over the dataset with tf.py_function."""
import re

from harness import *

MAXLEN = 150
WORD = re.compile(r"[a-z0-9]+")


def make_reviews(n, vocab, rng):
    p = 1 / np.arange(1, len(vocab) + 1)
    idx = rng.choice(len(vocab), size=(n, MAXLEN), p=p / p.sum())
    lens = rng.integers(60, MAXLEN, n)
    texts = [", ".join([" ".join(vocab[j] for j in row[: k // 2]).capitalize(),
                        " ".join(vocab[j] for j in row[k // 2: k])]) + "!"
             for row, k in zip(idx, lens)]
    return texts, (idx[:, :20].sum(1) % 2).astype("float32")


def main(h):
    rng = np.random.default_rng(0)
    vocab = ["".join(chr(97 + c) for c in rng.integers(0, 26, rng.integers(2, 9)))
             for _ in range(4000)]
    vocab = list(dict.fromkeys(vocab))
    word_index = {w: i + 2 for i, w in enumerate(vocab)}
    texts, labels = make_reviews(9600, vocab, rng)

    def tokenize(text):
        words = WORD.findall(text.numpy().decode("utf-8").lower())
        out = np.zeros(MAXLEN, "int32")
        for i, w in enumerate(words[:MAXLEN]):
            if w in word_index:
                out[i] = word_index[w]
            else:
                out[i] = 1
        return out

    tokenize = h.timed(tokenize, "py_function")

    def encode(text, label):
        ids = tf.py_function(tokenize, [text], tf.int32)
        ids.set_shape([MAXLEN])
        return ids, label

    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.constant(list(word_index)), tf.constant(list(word_index.values()), tf.int32)), 1)

    def encode_batch(text, label):
        t = tf.strings.regex_replace(tf.strings.lower(text), "[^a-z0-9]+", " ")
        words = tf.strings.split(t)
        ids = tf.ragged.map_flat_values(table.lookup, words)
        return ids.to_tensor(0, shape=[None, MAXLEN]), label

    ds = tf.data.Dataset.from_tensor_slices((texts, labels)).shuffle(9600)
    if h.fixed:
        ds = ds.batch(64).map(encode_batch, num_parallel_calls=tf.data.AUTOTUNE)
    else:
        ds = ds.map(encode).batch(64)
    ds = ds.prefetch(1)

    model = keras.Sequential([
        keras.layers.Embedding(len(vocab) + 2, 16),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ])
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    h.fit(model, ds)
