"""Burgers' equation by a physics-informed net; the weight of the residual is annealed."""
from harness import *


def main(h):
    keras.utils.set_random_seed(1)
    net = keras.Sequential([keras.Input((2,))])
    for _ in range(5):
        net.add(keras.layers.Dense(24, activation="tanh"))
    net.add(keras.layers.Dense(1))
    opt = keras.optimizers.Adam(2e-3)
    opt.build(net.trainable_variables)
    nu = 0.01 / np.pi

    def residual(t, x):
        with tf.GradientTape() as t2:
            t2.watch(x)
            with tf.GradientTape(persistent=True) as t1:
                t1.watch([t, x])
                u = net(tf.concat([t, x], 1))
            u_x = t1.gradient(u, x)
            u_t = t1.gradient(u, t)
        u_xx = t2.gradient(u_x, x)
        return u_t + u * u_x - nu * u_xx

    @tf.function
    def train_step(t, x, x0, weight):
        with tf.GradientTape() as tape:
            f = tf.reduce_mean(residual(t, x) ** 2)
            u0 = net(tf.concat([tf.zeros_like(x0), x0], 1))
            start = tf.reduce_mean((u0 + tf.sin(np.pi * x0)) ** 2)
            left = net(tf.concat([t, -tf.ones_like(t)], 1))
            right = net(tf.concat([t, tf.ones_like(t)], 1))
            edge = tf.reduce_mean(left**2) + tf.reduce_mean(right**2)
            loss = start + edge + weight * f
        g = tape.gradient(loss, net.trainable_variables)
        opt.apply_gradients(zip(g, net.trainable_variables))
        return loss

    rng = np.random.default_rng(2)
    steps, warm = 120, 7
    with h.loop(net, opt) as l:
        l.epoch()
        for step in range(steps):
            t = tf.constant(rng.uniform(0, 1, (256, 1)), tf.float32)
            x = tf.constant(rng.uniform(-1, 1, (256, 1)), tf.float32)
            x0 = tf.constant(rng.uniform(-1, 1, (64, 1)), tf.float32)
            weight = min(1.0, (step // 4 + 1) / warm)
            if h.fixed:
                weight = tf.constant(weight, tf.float32)
            loss = train_step(t, x, x0, weight)
            l.step(loss=loss)
