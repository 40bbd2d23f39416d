"""Tiny transformer encoder on padded token sequences, trained in mixed float16."""
from common import *

VOCAB, MAXLEN, DIM = 40, 16, 32


class Attention(L.Layer):
    def __init__(self, dim, **kw):
        super().__init__(**kw)
        self.dim = dim
        self.q, self.k, self.v = L.Dense(dim), L.Dense(dim), L.Dense(dim)
        self.out = L.Dense(dim)

    def call(self, x, keep):
        scores = tf.matmul(self.q(x), self.k(x), transpose_b=True) / self.dim**0.5
        keep = tf.cast(keep, scores.dtype)[:, None, :]
        scores += (1 - keep) * tf.cast(-1e9, scores.dtype)
        return self.out(tf.matmul(tf.nn.softmax(scores, axis=-1), self.v(x)))


class Encoder(keras.Model):
    def __init__(self, classes, blocks=1):
        super().__init__()
        self.emb = L.Embedding(VOCAB, DIM)
        self.pos = L.Embedding(MAXLEN, DIM)
        self.att = [Attention(DIM) for _ in range(blocks)]
        self.ffn = [keras.Sequential([L.Dense(64, activation="relu"), L.Dense(DIM)]) for _ in range(blocks)]
        self.ln1 = [L.LayerNormalization() for _ in range(blocks)]
        self.ln2 = [L.LayerNormalization() for _ in range(blocks)]
        self.head = L.Dense(classes, dtype="float32")

    def call(self, tokens):
        keep = tf.not_equal(tokens, 0)
        x = self.emb(tokens) + self.pos(tf.range(MAXLEN))
        for att, ffn, n1, n2 in zip(self.att, self.ffn, self.ln1, self.ln2):
            x = n1(x + att(x, keep))
            x = n2(x + ffn(x))
        w = tf.cast(keep, x.dtype)[..., None]
        pooled = tf.reduce_sum(x * w, axis=1) / tf.reduce_sum(w, axis=1)
        return self.head(pooled)


def sentences(n, rng):
    """Which of four topics do most of the words belong to?"""
    y = rng.integers(0, 4, n)
    x = np.zeros((n, MAXLEN), "int32")
    for i in range(n):
        length = rng.integers(6, MAXLEN + 1)
        topic = 1 + y[i] * 9 + rng.integers(0, 9, length)
        noise = rng.integers(1, 37, length)
        x[i, :length] = np.where(rng.random(length) < 0.5, topic, noise)
    return x, y


def main(log):
    keras.mixed_precision.set_global_policy("mixed_float16")
    rng = np.random.default_rng(0)
    x, y = sentences(1024, rng)
    xv, yv = sentences(256, rng)
    model = Encoder(4)
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(x, y, batch_size=64, epochs=5, validation_data=(xv, yv), verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
