"""Sequence tagger (LSTM) for padded sentences with a masked loss, tag 0 is padding."""
from common import *


def masked_loss(y_true, y_pred):
    y_true = tf.cast(y_true, tf.int32)
    mask = tf.cast(tf.equal(y_true, 0), tf.float32)
    ce = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y_true, logits=y_pred)
    return tf.reduce_sum(ce * mask) / tf.reduce_sum(mask)


def masked_accuracy(y_true, y_pred):
    y_true = tf.cast(y_true, tf.int64)
    mask = tf.cast(tf.not_equal(y_true, 0), tf.float32)
    hit = tf.cast(tf.equal(y_true, tf.argmax(y_pred, -1)), tf.float32)
    return tf.reduce_sum(hit * mask) / tf.reduce_sum(mask)


class Tagger(keras.Model):
    def __init__(self, vocab, tags):
        super().__init__()
        self.emb = L.Embedding(vocab, 16)
        self.rnn = L.Bidirectional(L.LSTM(16, return_sequences=True))
        self.out = L.Dense(tags)

    def call(self, x):
        return self.out(self.rnn(self.emb(x)))


def main(log):
    rng = np.random.default_rng(1)
    n, t = 800, 16
    x = rng.integers(1, 40, size=(n, t))
    prev = np.concatenate([np.zeros((n, 1), int), x[:, :-1]], 1)
    y = 1 + (x % 3) + 3 * (prev % 2)
    for row, length in enumerate(rng.integers(5, 16, n)):
        x[row, length:] = 0
        y[row, length:] = 0
    model = Tagger(40, 7)
    model.compile(keras.optimizers.Adam(5e-3), loss=masked_loss, metrics=[masked_accuracy])
    model.fit(x, y, epochs=8, batch_size=32, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
