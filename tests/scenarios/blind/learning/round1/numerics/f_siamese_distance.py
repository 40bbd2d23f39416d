"""Siamese network on digit images, triplet loss on the Euclidean distance, own training loop."""
from common import *


def make_triplets(x, y, n, rng):
    by_class = [np.flatnonzero(y == c) for c in range(10)]
    anchor = rng.integers(0, len(x), n)
    positive = np.array([rng.choice(by_class[y[i]]) for i in anchor])
    negative = np.array([rng.choice(by_class[(y[i] + rng.integers(1, 10)) % 10]) for i in anchor])
    return x[anchor], x[positive], x[negative]


def build_encoder():
    return keras.Sequential([
        keras.Input((8, 8, 1)),
        L.Conv2D(16, 3, activation="relu"),
        L.Conv2D(32, 3, activation="relu"),
        L.Flatten(),
        L.Dense(32),
    ])


def euclidean(u, v):
    return tf.sqrt(tf.reduce_sum(tf.square(u - v), axis=1))


def triplet_loss(near, far, margin=1.0):
    return tf.reduce_mean(tf.maximum(near - far + margin, 0.0))


def main(log):
    x, y = load("digits")
    x = (x / 16.0).astype("float32").reshape(-1, 8, 8, 1)
    y = y.astype(int)
    rng = np.random.default_rng(5)
    triplets = make_triplets(x, y, 3000, rng)
    ds = tf.data.Dataset.from_tensor_slices(triplets).shuffle(3000, seed=9).batch(50)

    encoder = build_encoder()
    optimizer = keras.optimizers.Adam(1e-3)
    accuracy = keras.metrics.Mean(name="accuracy")

    @tf.function
    def train_step(a, p, n):
        with tf.GradientTape() as tape:
            u, v, w = (encoder(t, training=True) for t in (a, p, n))
            near, far = euclidean(u, v), euclidean(u, w)
            loss = triplet_loss(near, far)
        grads = tape.gradient(loss, encoder.trainable_variables)
        optimizer.apply_gradients(zip(grads, encoder.trainable_variables))
        accuracy.update_state(tf.cast(near < far, tf.float32))
        return loss

    with log.loop(encoder, optimizer) as (epoch, step):
        for _ in range(6):
            epoch()
            accuracy.reset_state()
            for a, p, n in ds:
                step(float(train_step(a, p, n)))
            log.last_accuracy = float(accuracy.result())


if __name__ == "__main__":
    run(main)
