"""Node classification with a GCN on a stochastic block model, own loop with dropped edges."""
from common import *

NODES, CLASSES = 320, 4


class GCN(keras.Model):
    def __init__(self, width=32, layers=16):
        super().__init__()
        self.hidden = [L.Dense(width, activation="relu") for _ in range(layers)]
        self.out = L.Dense(CLASSES)

    def call(self, inputs):
        h, a = inputs
        for dense in self.hidden:
            h = dense(tf.matmul(a, h))
        return self.out(h)


def block_model(rng):
    y = np.repeat(np.arange(CLASSES), NODES // CLASSES)
    p = np.where(y[:, None] == y[None, :], 0.10, 0.02)
    upper = np.triu(rng.random((NODES, NODES)) < p, 1)
    x = rng.normal(size=(NODES, 16)) + 0.6 * rng.normal(size=(CLASSES, 16))[y]
    return x.astype("float32"), (upper | upper.T).astype("float32"), y.astype("int32")


def normalised(a):
    a = a + tf.eye(NODES)
    d = tf.math.rsqrt(tf.reduce_sum(a, axis=1))
    return a * d[:, None] * d[None, :]


def main(log):
    rng = np.random.default_rng(3)
    x, a, y = block_model(rng)
    train_nodes = np.sort(rng.permutation(NODES)[:160]).astype("int32")
    model = GCN()
    model((x, normalised(a)))
    opt = keras.optimizers.Adam(5e-3)
    opt.build(model.trainable_variables)
    ce = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train():
        kept = tf.linalg.band_part(tf.cast(tf.random.uniform((NODES, NODES)) > 0.2, tf.float32), 0, -1) * a
        with tf.GradientTape() as tape:
            logits = model((x, normalised(kept + tf.transpose(kept))), training=True)
            loss = ce(tf.gather(y, train_nodes), tf.gather(logits, train_nodes))
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    with log.loop(model, opt) as (epoch, step):
        for _ in range(10):
            epoch()
            for _ in range(20):
                step(train())


if __name__ == "__main__":
    run(main)
