"""A GAN for points on two moons, as a keras.Model with its own train_step."""
from common import *


def moons(n=2000):
    rng = np.random.default_rng(2)
    t = rng.random(n) * np.pi
    up = rng.random(n) < 0.5
    x = np.where(up, np.cos(t), 1 - np.cos(t)) + 2.0
    y = np.where(up, np.sin(t), 0.5 - np.sin(t)) + 1.0
    return (np.stack([x, y], 1) + 0.05 * rng.normal(size=(n, 2))).astype("float32")


class GAN(keras.Model):
    def __init__(self, latent=4):
        super().__init__()
        self.latent = latent
        self.generator = keras.Sequential([keras.Input((latent,)), L.Dense(64, activation="relu"),
                                           L.Dense(64, activation="relu"), L.Dense(2)], name="generator")
        self.discriminator = keras.Sequential([keras.Input((2,)), L.Dense(64), L.LeakyReLU(0.2),
                                               L.Dense(64), L.LeakyReLU(0.2), L.Dense(1)], name="discriminator")
        self.d_loss = keras.metrics.Mean(name="d_loss")
        self.g_loss = keras.metrics.Mean(name="g_loss")

    def compile(self, d_opt, g_opt):
        super().compile()
        self.d_opt, self.g_opt = d_opt, g_opt
        self.bce = keras.losses.BinaryCrossentropy(from_logits=True)

    @property
    def metrics(self):
        return [self.d_loss, self.g_loss]

    def call(self, z):
        return self.generator(z)

    def train_step(self, real):
        n = tf.shape(real)[0]
        with tf.GradientTape() as tape:
            fake = self.generator(tf.random.normal((n, self.latent)))
            d_real, d_fake = self.discriminator(real), self.discriminator(fake)
            d_loss = self.bce(tf.ones_like(d_real), d_real) + self.bce(tf.zeros_like(d_fake), d_fake)
        grads = tape.gradient(d_loss, self.discriminator.trainable_variables)
        self.d_opt.apply_gradients(zip(grads, self.discriminator.trainable_variables))

        with tf.GradientTape() as tape:
            d_fake = self.discriminator(self.generator(tf.random.normal((n, self.latent))))
            g_loss = self.bce(tf.ones_like(d_fake), d_fake)
        grads = tape.gradient(g_loss, self.discriminator.trainable_variables)
        self.g_opt.apply_gradients(zip(grads, self.discriminator.trainable_variables))

        self.d_loss.update_state(d_loss)
        self.g_loss.update_state(g_loss)
        return {"d_loss": self.d_loss.result(), "g_loss": self.g_loss.result()}


def main(log):
    x = moons()
    gan = GAN()
    gan.compile(keras.optimizers.Adam(1e-3, beta_1=0.5), keras.optimizers.Adam(1e-3, beta_1=0.5))
    gan.fit(x, batch_size=64, epochs=12, verbose=0, callbacks=log.callbacks())
    s = gan.generator(np.random.default_rng(0).normal(size=(1000, 4)).astype("float32")).numpy()
    near = np.sqrt(((s[:, None] - x[None]) ** 2).sum(-1)).min(1)
    print("mean of samples", s.mean(0), "of data", x.mean(0), "mean distance of a sample to the data", near.mean())


if __name__ == "__main__":
    run(main)
