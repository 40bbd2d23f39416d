"""Wasserstein GAN with gradient penalty on a ring of points, in a loop of its own."""
from common import *


def ring(n=4000):
    rng = np.random.default_rng(4)
    t = rng.random(n) * 2 * np.pi
    r = 1.5 + 0.1 * rng.normal(size=n)
    return np.stack([r * np.cos(t) + 2, r * np.sin(t) - 1], 1).astype("float32")


def sliced_w(a, b):
    out = []
    for k in range(12):
        d = np.array([np.cos(k * np.pi / 12), np.sin(k * np.pi / 12)])
        out.append(np.abs(np.sort(a @ d) - np.sort(b @ d)).mean())
    return float(np.mean(out))


def main(log):
    data = ring()
    G = keras.Sequential([keras.Input((3,)), L.Dense(64, activation="relu"), L.Dense(64, activation="relu"), L.Dense(2)])
    C = keras.Sequential([keras.Input((2,)), L.Dense(64), L.LeakyReLU(0.2), L.Dense(64), L.LeakyReLU(0.2), L.Dense(1)])
    g_opt, c_opt = keras.optimizers.Adam(5e-4, beta_1=0.0, beta_2=0.9), keras.optimizers.Adam(2e-3, beta_1=0.0, beta_2=0.9)
    g_opt.build(G.trainable_variables)
    c_opt.build(C.trainable_variables)

    @tf.function
    def critic_step(real):
        n = tf.shape(real)[0]
        fake = G(tf.random.normal((n, 3)))
        mix = tf.random.uniform((n, 1))
        between = mix * real + (1 - mix) * fake
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                inner.watch(between)
                score = C(between)
            slope = tf.sqrt(tf.reduce_sum(inner.gradient(score, between) ** 2, -1) + 1e-12)
            loss = tf.reduce_mean(C(fake)) - tf.reduce_mean(C(real)) + 1.0 * tf.reduce_mean((slope - 1) ** 2)
        c_opt.apply_gradients(zip(tape.gradient(loss, C.trainable_variables), C.trainable_variables))
        return loss

    @tf.function
    def generator_step():
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(C(G(tf.random.normal((64, 3)))))
        g_opt.apply_gradients(zip(tape.gradient(loss, G.trainable_variables), G.trainable_variables))
        return loss

    rng = np.random.default_rng(0)
    fixed = rng.normal(size=(4000, 3)).astype("float32")
    print("before: sliced distance", sliced_w(G(fixed).numpy(), data))
    with log.loop(G, g_opt) as (epoch, step):
        for e in range(8):
            epoch()
            for _ in range(75):
                for _ in range(4):
                    critic_step(tf.constant(data[rng.integers(0, len(data), 64)]))
                step(float(generator_step()))
            print(f"epoch {e} sliced distance {sliced_w(G(fixed).numpy(), data):.3f}")


if __name__ == "__main__":
    run(main)
