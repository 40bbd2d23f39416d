"""Image GAN whose author once hunted a NaN: tf.debugging.enable_check_numerics is still there."""
from harness import *

L = keras.layers


def main(h):
    if not h.fixed:
        tf.debugging.enable_check_numerics()
    gen = keras.Sequential([
        keras.Input((32,)), L.Dense(16 * 16 * 16), L.Reshape((16, 16, 16)),
        L.UpSampling2D(), L.Conv2D(8, 3, padding="same"), L.LeakyReLU(0.2),
        L.UpSampling2D(), L.Conv2D(3, 3, padding="same", activation="tanh")])
    disc = keras.Sequential([
        keras.Input((64, 64, 3)), L.Conv2D(8, 3, strides=1, padding="same"), L.LeakyReLU(0.2),
        L.AveragePooling2D(2), L.Conv2D(16, 3, strides=2, padding="same"), L.LeakyReLU(0.2),
        L.Flatten(), L.Dense(1)])
    g_opt, d_opt = keras.optimizers.Adam(1e-4), keras.optimizers.Adam(1e-4)
    g_opt.build(gen.trainable_variables)
    d_opt.build(disc.trainable_variables)
    data = np.random.default_rng(0).uniform(-1, 1, (960, 64, 64, 3)).astype("float32")
    ds = tf.data.Dataset.from_tensor_slices(data).batch(32, drop_remainder=True).repeat().prefetch(2)

    def augment(x):  # differentiable augmentation
        n = tf.shape(x)[0]
        x = x + tf.random.uniform((n, 1, 1, 1), -0.2, 0.2)
        mean = tf.reduce_mean(x, -1, keepdims=True)
        x = (x - mean) * tf.random.uniform((n, 1, 1, 1), 0.5, 1.5) + mean
        mean = tf.reduce_mean(x, [1, 2, 3], keepdims=True)
        return (x - mean) * tf.random.uniform((n, 1, 1, 1), 0.7, 1.3) + mean

    @tf.function
    def train_step(real):
        z = tf.random.normal((32, 32))
        with tf.GradientTape() as gt, tf.GradientTape() as dt:
            fake = gen(z, training=True)
            r, f = disc(augment(real), training=True), disc(augment(fake), training=True)
            d_loss = tf.reduce_mean(tf.nn.relu(1 - r)) + tf.reduce_mean(tf.nn.relu(1 + f))
            g_loss = -tf.reduce_mean(f)
        dv, gv = disc.trainable_variables, gen.trainable_variables
        d_opt.apply_gradients(zip(dt.gradient(d_loss, dv), dv))
        g_opt.apply_gradients(zip(gt.gradient(g_loss, gv), gv))
        return d_loss

    with h.loop(gen, g_opt) as l:
        batches = iter(ds)
        l.epoch()
        for _ in range(60):
            loss = train_step(next(batches))
            l.step(loss=loss)
