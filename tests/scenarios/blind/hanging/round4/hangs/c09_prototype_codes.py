"""Self-supervised prototypes: balanced codes are computed by Sinkhorn normalisation."""
import os

import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"
TOLERANCE = 1e-4 if CONTROL else 1e-8
BATCH = 128
PROTOTYPES = 32

tf.config.threading.set_intra_op_parallelism_threads(1)


class Encoder(tf.Module):
    def __init__(self):
        super().__init__()
        self.w1 = tf.Variable(tf.random.normal((20, 64), stddev=0.2, seed=1))
        self.w2 = tf.Variable(tf.random.normal((64, 16), stddev=0.2, seed=2))
        self.prototypes = tf.Variable(tf.random.normal((16, PROTOTYPES), seed=3))

    def __call__(self, x):
        z = tf.matmul(tf.nn.relu(tf.matmul(x, self.w1)), self.w2)
        return tf.matmul(tf.math.l2_normalize(z, axis=1),
                         tf.math.l2_normalize(self.prototypes, axis=0))


def balanced_codes(scores):
    q = tf.exp(scores / 0.25)
    column_mass = BATCH / PROTOTYPES
    error = tf.constant(1.0)
    while error > TOLERANCE:
        q = q / tf.reduce_sum(q, axis=0, keepdims=True) * column_mass
        q = q / tf.reduce_sum(q, axis=1, keepdims=True)
        error = tf.reduce_max(tf.abs(tf.reduce_sum(q, axis=0) / column_mass - 1.0))
    return q


encoder = Encoder()


@tf.function
def train_step(view_a, view_b):
    codes = balanced_codes(encoder(view_a))
    with tf.GradientTape() as tape:
        logits = encoder(view_b) / 0.1
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(codes, logits))
    grads = tape.gradient(loss, encoder.trainable_variables)
    for v, g in zip(encoder.trainable_variables, grads):
        v.assign_sub(0.05 * g)
    return loss


def main():
    tf.random.set_seed(0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(BATCH * 50, 20)).astype("float32")
    ds = tf.data.Dataset.from_tensor_slices(x).shuffle(1000, seed=1)
    ds = ds.batch(BATCH, drop_remainder=True)
    for epoch in range(4):
        for view in ds:
            noise = tf.random.normal(tf.shape(view), stddev=0.1)
            loss = train_step(view, view + noise)
        print("epoch", epoch, "loss %.4f" % float(loss), flush=True)


if __name__ == "__main__":
    main()
