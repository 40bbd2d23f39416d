"""Toxic comments, from a notebook: clean + tokenize inside tf.py_function, one comment at a time."""
from harness import *
import re
import string

MAXLEN, BATCH, N = 50, 32, 9600
STOP = {"the", "a", "of", "and", "to", "in", "is", "it"}


def main(h):
    rng = np.random.default_rng(0)
    vocab = [f"w{i}" for i in range(2000)] + sorted(STOP)
    texts = []
    for _ in range(N):
        w = [vocab[i] for i in rng.integers(0, len(vocab), rng.integers(30, 70))]
        w[3] = "<br />" + w[3] + "!!"
        w[5] = "http://t.co/" + w[5]
        texts.append(" ".join(w).capitalize() + ".")
    y = (rng.random(N) < 0.1).astype("float32")
    index = {w: i + 2 for i, w in enumerate(vocab)}

    def clean(t):
        t = t.numpy().decode("utf-8").lower()
        t = re.sub(r"<[^>]+>", " ", t)
        t = re.sub(r"http\S+", " url ", t)
        t = "".join(c for c in t if c not in string.punctuation)
        t = re.sub(r"(.)\1{3,}", r"\1", t)
        ids = [index.get(w, 1) for w in t.split() if w not in STOP][:MAXLEN]
        return np.array(ids + [0] * (MAXLEN - len(ids)), "int32")

    ds = tf.data.Dataset.from_tensor_slices((texts, y[:, None])).shuffle(1000, seed=1)
    if h.fixed:
        words = [w for w in vocab if w not in STOP]
        vec = keras.layers.TextVectorization(
            standardize=lambda t: tf.strings.regex_replace(
                tf.strings.regex_replace(tf.strings.lower(t), r"<[^>]+>|http\S+", " "), r"[!-/:-@\[-`{-~]", ""
            ),
            output_sequence_length=MAXLEN,
            vocabulary=words,
        )
        ds = ds.batch(BATCH, drop_remainder=True).map(
            lambda t, l: (tf.cast(vec(t), tf.int32), l), num_parallel_calls=tf.data.AUTOTUNE
        )
    else:
        f = h.timed(clean, "py_function")

        def encode(t, l):
            x = tf.py_function(f, [t], tf.int32)
            x.set_shape([MAXLEN])
            return x, l

        ds = ds.map(encode).batch(BATCH, drop_remainder=True)
    ds = ds.prefetch(1)
    inp = keras.Input((MAXLEN,), dtype="int32")
    z = keras.layers.Embedding(len(vocab) + 2, 16)(inp)
    z = keras.layers.Conv1D(16, 3, activation="relu")(z)
    z = keras.layers.GlobalMaxPooling1D()(z)
    model = keras.Model(inp, keras.layers.Dense(1, activation="sigmoid")(z))
    model.compile("adam", "binary_crossentropy", metrics=[keras.metrics.AUC(name="auc")])
    h.fit(model, ds, class_weight={0: 1.0, 1: 8.0})
