"""Intent classification with a small transformer encoder and the schedule of 'Attention is all you need'."""
from common import *

D_MODEL, HEADS, VOCAB, LENGTH, CLASSES = 32, 2, 300, 16, 6


class CustomSchedule(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, d_model, warmup_steps=120):
        super().__init__()
        self.d_model = d_model
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        step = tf.cast(step, tf.float32) + 1.0
        arg1 = tf.math.rsqrt(step)
        arg2 = step * (self.warmup_steps ** -1.5)
        return tf.math.rsqrt(tf.cast(self.d_model, tf.float32)) * tf.math.maximum(arg1, arg2)

    def get_config(self):
        return {"d_model": self.d_model, "warmup_steps": self.warmup_steps}


class PositionalEmbedding(L.Layer):
    def __init__(self, length, vocab, dim, **kw):
        super().__init__(**kw)
        self.tokens = L.Embedding(vocab, dim)
        self.positions = L.Embedding(length, dim)
        self.length = length

    def call(self, x):
        return self.tokens(x) + self.positions(tf.range(self.length))


def encoder_block(x):
    attended = L.MultiHeadAttention(HEADS, D_MODEL // HEADS)(x, x)
    x = L.LayerNormalization()(x + L.Dropout(0.1)(attended))
    ff = L.Dense(64, activation="relu")(x)
    ff = L.Dense(D_MODEL)(ff)
    return L.LayerNormalization()(x + L.Dropout(0.1)(ff))


def utterances(n, rng):
    y = rng.integers(0, CLASSES, n)
    x = rng.integers(60, VOCAB, (n, LENGTH))
    for i in range(n):                      # three words that tell the intent, ten of them for each class
        where = rng.choice(LENGTH, 3, replace=False)
        x[i, where] = y[i] * 10 + rng.integers(0, 10, 3)
    return x.astype("int32"), y.astype("int32")


def main(log):
    rng = np.random.default_rng(0)
    x, y = utterances(1920, rng)
    xv, yv = utterances(400, rng)

    inp = keras.Input((LENGTH,), dtype="int32")
    h = PositionalEmbedding(LENGTH, VOCAB, D_MODEL)(inp)
    h = encoder_block(h)
    h = L.GlobalAveragePooling1D()(h)
    h = L.Dense(32, activation="relu")(h)
    out = L.Dense(CLASSES, activation="softmax")(h)
    model = keras.Model(inp, out)

    optimizer = keras.optimizers.Adam(CustomSchedule(D_MODEL), beta_1=0.9, beta_2=0.98, epsilon=1e-9)
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, batch_size=64, epochs=6, validation_data=(xv, yv), verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
