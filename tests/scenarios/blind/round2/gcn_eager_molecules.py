"""Graph convolution over small molecules, one padded-free graph at a time, own loop."""
from harness import *

F = 16


class GCN(keras.Model):
    def __init__(self):
        super().__init__()
        self.msg = [keras.layers.Dense(48, use_bias=False) for _ in range(3)]
        self.upd = [keras.layers.Dense(48) for _ in range(3)]
        self.out = keras.layers.Dense(1)

    def call(self, inputs):
        x, src, dst = inputs
        z = x
        for m, u in zip(self.msg, self.upd):
            sent = tf.gather(m(z), src)
            got = tf.math.unsorted_segment_mean(sent, dst, tf.shape(z)[0])
            z = tf.nn.relu(u(z) + got)
        return self.out(tf.reduce_mean(z, 0, keepdims=True))


def molecules(n):
    rng = np.random.default_rng(5)
    for _ in range(n):
        v = int(rng.integers(8, 30))
        e = int(rng.integers(v, 3 * v))
        x = rng.normal(size=(v, F)).astype("float32")
        src, dst = rng.integers(0, v, (2, e)).astype("int32")
        yield x, src, dst, np.float32(x[:, 0].mean())


def main(h):
    graphs = [tuple(tf.constant(a) for a in g) for g in molecules(100)]
    model = GCN()
    model(graphs[0][:3])
    opt = keras.optimizers.Adam(1e-3)
    opt.build(model.trainable_variables)

    def train_step(x, src, dst, y):
        with tf.GradientTape() as tape:
            p = model((x, src, dst), training=True)
            loss = tf.reduce_mean((p - y) ** 2)
        g = tape.gradient(loss, model.trainable_variables)
        g = [tf.clip_by_norm(v, 1.0) for v in g]
        opt.apply_gradients(zip(g, model.trainable_variables))
        return loss

    if h.fixed:
        sig = [
            tf.TensorSpec((None, F), tf.float32),
            tf.TensorSpec((None,), tf.int32),
            tf.TensorSpec((None,), tf.int32),
            tf.TensorSpec((), tf.float32),
        ]
        train_step = tf.function(train_step, input_signature=sig)
    total = 0.0
    with h.loop(model, opt) as l:
        for epoch in range(1):
            l.epoch()
            for g in graphs:
                loss = train_step(*g)
                total += float(loss)
                l.step(loss=loss)
