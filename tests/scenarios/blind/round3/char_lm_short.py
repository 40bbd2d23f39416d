"""Character transformer, 3 blocks, a smoke test of 30 small steps before the real training."""
from harness import *

VOCAB, T, D, BLOCKS = 96, 32, 48, 3


class Block(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.att = keras.layers.MultiHeadAttention(4, D // 4)
        self.n1, self.n2 = keras.layers.LayerNormalization(), keras.layers.LayerNormalization()
        self.f1 = keras.layers.Dense(4 * D, activation="gelu")
        self.f2 = keras.layers.Dense(D)

    def call(self, x):
        a = self.n1(x)
        x = x + self.att(a, a, use_causal_mask=True)
        return x + self.f2(self.f1(self.n2(x)))


class CharLM(keras.Model):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = keras.layers.Embedding(VOCAB, D), keras.layers.Embedding(T, D)
        self.blocks = [Block() for _ in range(BLOCKS)]
        self.norm, self.head = keras.layers.LayerNormalization(), keras.layers.Dense(VOCAB)

    def call(self, ids):
        x = self.tok(ids) + self.pos(tf.range(T))
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x))


def main(h):
    text = np.frombuffer(("to be or not to be, that is the question. " * 400).encode(), np.uint8)
    ids = (text.astype("int32") - 32).clip(0, VOCAB - 1)
    ds = tf.data.Dataset.from_tensor_slices(ids).batch(T + 1, drop_remainder=True)
    ds = ds.map(lambda s: (s[:-1], s[1:])).shuffle(200).batch(16, drop_remainder=True)
    ds = ds.take(30).prefetch(tf.data.AUTOTUNE)
    model = CharLM()
    model.compile(optimizer=keras.optimizers.AdamW(3e-4),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    h.fit(model, ds)
