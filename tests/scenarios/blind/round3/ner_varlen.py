"""NER tagger, research loop: batches of similar length, padded to the longest of the batch."""
from harness import *

VOCAB, TAGS, BATCH, STEPS = 3000, 9, 16, 150


class Tagger(keras.Model):
    def __init__(self):
        super().__init__()
        self.emb = keras.layers.Embedding(VOCAB, 48)
        self.convs = [keras.layers.Conv1D(48, 3, padding="same", activation="relu")
                      for _ in range(2)]
        self.norms = [keras.layers.LayerNormalization() for _ in range(2)]
        self.drop = keras.layers.Dropout(0.1)
        self.head = keras.layers.Dense(TAGS)

    def call(self, ids, training=False):
        x = self.emb(ids)
        for c, n in zip(self.convs, self.norms):
            x = n(x + self.drop(c(x), training=training))
        return self.head(x)


def batches(rng):
    lengths = np.sort(rng.normal(22, 2.2, STEPS * BATCH).astype(int))
    order = rng.permutation(STEPS)
    for b in order:
        ls = lengths[b * BATCH: (b + 1) * BATCH]
        ids = np.zeros((BATCH, ls.max()), "int32")
        for i, n in enumerate(ls):
            ids[i, :n] = rng.integers(1, VOCAB, n)
        yield ids, ids % TAGS


def main(h):
    rng = np.random.default_rng(3)
    model = Tagger()
    model(np.ones((1, 8), "int32"))
    opt = keras.optimizers.Adam(1e-3)
    opt.build(model.trainable_variables)
    ce = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)

    def train_step(ids, tags):
        with tf.GradientTape() as tape:
            logits = model(ids, training=True)
            mask = tf.cast(ids > 0, tf.float32)
            loss = tf.reduce_sum(ce(tags, logits) * mask) / tf.reduce_sum(mask)
        g = tape.gradient(loss, model.trainable_variables)
        g, _ = tf.clip_by_global_norm(g, 1.0)
        opt.apply_gradients(zip(g, model.trainable_variables))
        return loss

    if h.fixed:
        spec = tf.TensorSpec([None, None], tf.int32)
        train_step = tf.function(train_step, input_signature=[spec, spec])
    else:
        train_step = tf.function(train_step)

    with h.loop(model, opt) as l:
        l.epoch()
        for ids, tags in batches(rng):
            loss = train_step(tf.constant(ids), tf.constant(tags))
            l.step(loss=loss)
