"""Cross-batch memory for metric learning: the bank is a tensor that grows at every step."""
from harness import *

L = keras.layers
STEPS, BATCH, DIM = 30, 32, 32


def main(h):
    net = keras.Sequential([
        keras.Input((24, 24, 1)), L.Conv2D(16, 3, strides=2), L.BatchNormalization(), L.ReLU(),
        L.Conv2D(32, 3, strides=2), L.BatchNormalization(), L.ReLU(),
        L.GlobalAveragePooling2D(), L.Dense(DIM), L.UnitNormalization()])
    opt = keras.optimizers.Adam(1e-3)
    opt.build(net.trainable_variables)
    rng = np.random.default_rng(0)
    images = rng.random((STEPS * BATCH, 24, 24, 1), dtype="float32")
    labels = rng.integers(0, 20, STEPS * BATCH).astype("int32")
    ds = tf.data.Dataset.from_tensor_slices((images, labels)).batch(BATCH).prefetch(2)

    @tf.function
    def step(x, y, bank, bank_y):
        with tf.GradientTape() as tape:
            e = net(x, training=True)
            sim = tf.matmul(e, tf.concat([bank, e], 0), transpose_b=True)
            all_y = tf.concat([bank_y, y], 0)
            pos = tf.cast(y[:, None] == all_y[None], tf.float32)
            valid = tf.cast(all_y >= 0, tf.float32)[None]
            loss = tf.reduce_sum((pos * (1 - sim) + (1 - pos) * tf.nn.relu(sim - 0.5)) * valid)
            loss /= tf.reduce_sum(valid) * BATCH
        opt.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
        return loss, e

    with h.loop(net, opt) as l:
        l.epoch()
        if h.fixed:  # a ring of fixed size; empty places have the label -1
            size = STEPS * BATCH
            bank, bank_y = tf.zeros((size, DIM)), tf.fill((size,), -1)
        else:
            bank, bank_y = tf.zeros((0, DIM)), tf.zeros((0,), tf.int32)
        for x, y in ds:
            loss, e = step(x, y, bank, bank_y)
            if h.fixed:
                bank, bank_y = tf.concat([bank[BATCH:], e], 0), tf.concat([bank_y[BATCH:], y], 0)
            else:
                bank, bank_y = tf.concat([bank, e], 0), tf.concat([bank_y, y], 0)
            l.step(loss=loss)
