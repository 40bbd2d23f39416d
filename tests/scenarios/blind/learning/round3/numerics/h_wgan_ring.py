"""WGAN-GP for points on a ring of two dimensions, own train_step."""
from common import *


class WGAN(keras.Model):
    def __init__(self, gen, critic):
        super().__init__()
        self.gen, self.critic = gen, critic

    def compile(self, g_opt, d_opt):
        super().compile()
        self.g_opt, self.d_opt = g_opt, d_opt

    def train_step(self, real):
        n = tf.shape(real)[0]
        for _ in range(3):
            with tf.GradientTape() as tape:
                fake = self.gen(tf.random.normal((n, 4)), training=True)
                d_loss = tf.reduce_mean(self.critic(fake)) - tf.reduce_mean(self.critic(real))
                e = tf.random.uniform((n, 1))
                mix = e * real + (1 - e) * fake
                with tf.GradientTape() as inner:
                    inner.watch(mix)
                    score = self.critic(mix)
                slope = tf.norm(inner.gradient(score, mix) + 1e-8, axis=1)
                total = d_loss + 0.5 * tf.reduce_mean(tf.square(slope - 1.0))
            v = self.critic.trainable_variables
            self.d_opt.apply_gradients(zip(tape.gradient(total, v), v))
        with tf.GradientTape() as tape:
            g_loss = -tf.reduce_mean(self.critic(self.gen(tf.random.normal((n, 4)), training=True)))
        v = self.gen.trainable_variables
        self.g_opt.apply_gradients(zip(tape.gradient(g_loss, v), v))
        return {"d_loss": d_loss, "g_loss": g_loss}


def distance(a, b):
    out = []
    for t in np.linspace(0, np.pi, 16):
        d = np.array([np.cos(t), np.sin(t)])
        out.append(np.abs(np.sort(a @ d) - np.sort(b @ d)).mean())
    return float(np.mean(out))


def main(log):
    rng = np.random.default_rng(2)
    angle = rng.random(3200) * 2 * np.pi
    real = (np.stack([np.cos(angle), np.sin(angle)], 1) * 2 + 1 + 0.05 * rng.normal(size=(3200, 2))).astype("float32")
    gen = keras.Sequential([keras.Input((4,)), L.Dense(48, activation="relu"), L.Dense(48, activation="relu"), L.Dense(2)])
    critic = keras.Sequential([keras.Input((2,)), L.Dense(48, activation="relu"), L.Dense(48, activation="relu"), L.Dense(1)])
    model = WGAN(gen, critic)
    model.compile(keras.optimizers.Adam(1e-3, beta_1=0.5, beta_2=0.9), keras.optimizers.Adam(2e-3, beta_1=0.5, beta_2=0.9))
    z = rng.normal(size=(3200, 4)).astype("float32")
    before = distance(gen.predict(z, verbose=0), real)
    model.fit(tf.data.Dataset.from_tensor_slices(real).shuffle(3200).batch(64), epochs=8, verbose=0,
              callbacks=log.callbacks())
    return {"distance": [before, distance(gen.predict(z, verbose=0), real)]}


if __name__ == "__main__":
    run(main)
