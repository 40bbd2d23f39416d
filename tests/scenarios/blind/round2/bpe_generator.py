"""Sentiment model on sub-words. The byte-pair encoder is the plain Python one from the blog post."""
from harness import *
import random
import re

SEQ, BATCH, STEPS = 64, 32, 150


def make_corpus(n, rng):
    syll = ["ba", "ke", "tion", "ing", "pre", "con", "ter", "mo", "li", "ness", "un", "ver", "sta", "ro", "qui", "al"]
    words = ["".join(rng.choices(syll, k=rng.randint(1, 4))) for _ in range(3000)]
    weights = [1.0 / (i + 2) for i in range(len(words))]
    return [" ".join(rng.choices(words, weights, k=rng.randint(25, 45))) for _ in range(n)]


def learn_merges(texts, k):
    from collections import Counter

    vocab = Counter(w for t in texts for w in t.split())
    split = {w: list(w) + ["</w>"] for w in vocab}
    merges = []
    for _ in range(k):
        pairs = Counter()
        for w, n in vocab.items():
            s = split[w]
            for a, b in zip(s, s[1:]):
                pairs[a, b] += n
        if not pairs:
            break
        best = max(pairs, key=pairs.get)
        merges.append(best)
        for w, s in split.items():
            i = 0
            while i < len(s) - 1:
                if (s[i], s[i + 1]) == best:
                    s[i : i + 2] = [s[i] + s[i + 1]]
                i += 1
    return merges


class BPE:
    def __init__(self, merges, cached):
        self.rank = {m: i for i, m in enumerate(merges)}
        toks = sorted({c for m in merges for c in (*m, m[0] + m[1])})
        self.ids = {t: i + 2 for i, t in enumerate(toks)}
        self.cache = {} if cached else None

    def word(self, w):
        if self.cache is not None and w in self.cache:
            return self.cache[w]
        s = list(w) + ["</w>"]
        while len(s) > 1:
            pairs = {(a, b) for a, b in zip(s, s[1:])}
            best = min(pairs, key=lambda p: self.rank.get(p, 1 << 30))
            if best not in self.rank:
                break
            out, i = [], 0
            while i < len(s):
                if i < len(s) - 1 and (s[i], s[i + 1]) == best:
                    out.append(s[i] + s[i + 1])
                    i += 2
                else:
                    out.append(s[i])
                    i += 1
            s = out
        r = [self.ids.get(t, 1) for t in s]
        if self.cache is not None:
            self.cache[w] = r
        return r

    def encode(self, text):
        out = []
        for w in re.findall(r"\w+", text.lower()):
            out.extend(self.word(w))
        return out


def main(h):
    rng = random.Random(1)
    texts = make_corpus(BATCH * STEPS, rng)
    labels = [rng.random() < 0.4 for _ in texts]
    bpe = BPE(learn_merges(texts[:120], 100), cached=h.fixed)

    def batches():
        for s in range(STEPS):
            x = np.zeros((BATCH, SEQ), "int32")
            y = np.zeros((BATCH, 1), "float32")
            for j in range(BATCH):
                t = bpe.encode(texts[s * BATCH + j])[:SEQ]
                x[j, : len(t)] = t
                y[j] = labels[s * BATCH + j]
            yield x, y

    ds = tf.data.Dataset.from_generator(
        h.gen(batches),
        output_signature=(tf.TensorSpec((BATCH, SEQ), tf.int32), tf.TensorSpec((BATCH, 1), tf.float32)),
    ).prefetch(2)
    model = keras.Sequential([
        keras.layers.Input((SEQ,), dtype="int32"),
        keras.layers.Embedding(len(bpe.ids) + 2, 32),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ])
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    h.fit(model, ds)
