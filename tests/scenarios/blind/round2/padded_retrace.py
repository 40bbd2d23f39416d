"""Named entities: sentences sorted into buckets, each batch padded to its own longest (up to a multiple of 8); own training loop."""
from harness import *

VOCAB, TAGS, BATCH, STEPS = 3000, 9, 16, 90


class Tagger(keras.Model):
    def __init__(self):
        super().__init__()
        self.emb = keras.layers.Embedding(VOCAB, 32)
        self.c1 = keras.layers.Conv1D(48, 5, padding="same", activation="relu")
        self.c2 = keras.layers.Conv1D(48, 3, padding="same", activation="relu")
        self.norm = keras.layers.LayerNormalization()
        self.out = keras.layers.Dense(TAGS)

    def call(self, ids, training=False):
        z = self.c1(self.emb(ids))
        return self.out(self.norm(z + self.c2(z)))


def main(h):
    rng = np.random.default_rng(8)
    lengths = np.sort(np.clip(rng.lognormal(3.2, 0.5, BATCH * STEPS), 5, 110).astype(int))
    sents = [rng.integers(1, VOCAB, n) for n in lengths]
    tags = [rng.integers(0, TAGS, n) for n in lengths]
    order = rng.permutation(STEPS)

    model, opt = Tagger(), keras.optimizers.Adam(1e-3)
    model(np.ones((1, 8), "int32"))
    opt.build(model.trainable_variables)
    xent = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def train_step(ids, tag):
        with tf.GradientTape() as tape:
            mask = tf.cast(ids > 0, tf.float32)
            loss = xent(tag, model(ids, training=True), sample_weight=mask)
        opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    spec = tf.TensorSpec((None, None), tf.int32)
    train_step = tf.function(train_step, input_signature=(spec, spec) if h.fixed else None)

    with h.loop(model, opt) as l:
        l.epoch()
        for b in order:
            s, t = sents[b * BATCH : (b + 1) * BATCH], tags[b * BATCH : (b + 1) * BATCH]
            n = -(-max(map(len, s)) // 8) * 8  # a multiple of 8
            ids, tag = np.zeros((BATCH, n), "int32"), np.zeros((BATCH, n), "int32")
            for j in range(BATCH):
                ids[j, : len(s[j])] = s[j]
                tag[j, : len(t[j])] = t[j]
            loss = train_step(tf.constant(ids), tf.constant(tag))
            l.step(loss=float(loss))
