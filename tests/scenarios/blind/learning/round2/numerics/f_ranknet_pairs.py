"""RankNet: learn to order patients by disease progression from pairs within a batch."""
from common import *


class Scorer(keras.Model):
    def __init__(self):
        super().__init__()
        self.body = keras.Sequential([L.Dense(64, activation="relu"), L.Dense(32, activation="relu")])
        self.score = L.Dense(1)

    def call(self, x):
        return self.score(self.body(x))


def ranknet_loss(y, s):
    truth = tf.sign(y - tf.transpose(y))
    p = 0.5 * (1.0 + truth)
    diff = s - tf.transpose(s)
    return tf.reduce_mean(tf.nn.softplus(diff) - p * diff)


def main(log):
    x, y = load("diabetes")
    x, y = standardised(x).astype("float32"), y.astype("float32")
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], y[order]
    groups = tf.data.Dataset.from_tensor_slices((x[:352], y[:352])).shuffle(352, seed=2).batch(16)
    model = Scorer()
    model(x[:2])
    opt = keras.optimizers.Adam(2e-3)
    opt.build(model.trainable_variables)

    @tf.function
    def train(xb, yb):
        with tf.GradientTape() as tape:
            loss = ranknet_loss(yb, model(xb, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    with log.loop(model, opt) as (epoch, step):
        for _ in range(12):
            epoch()
            for xb, yb in groups:
                step(train(xb, yb))


if __name__ == "__main__":
    run(main)
