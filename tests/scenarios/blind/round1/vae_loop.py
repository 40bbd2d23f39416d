"""Beta-VAE on small digits, written as a loop from the paper's pseudo code."""
from harness import *


class Encoder(keras.Model):
    def __init__(self, latent):
        super().__init__()
        self.d1 = keras.layers.Dense(128, activation="relu")
        self.d2 = keras.layers.Dense(64, activation="relu")
        self.mu = keras.layers.Dense(latent)
        self.logvar = keras.layers.Dense(latent)

    def call(self, x):
        x = self.d2(self.d1(x))
        return self.mu(x), self.logvar(x)


class Decoder(keras.Model):
    def __init__(self, n):
        super().__init__()
        self.d1 = keras.layers.Dense(64, activation="relu")
        self.d2 = keras.layers.Dense(128, activation="relu")
        self.out = keras.layers.Dense(n)

    def call(self, z):
        return self.out(self.d2(self.d1(z)))


class VAE(keras.Model):
    def __init__(self, n, latent=8):
        super().__init__()
        self.enc, self.dec = Encoder(latent), Decoder(n)

    def call(self, x):
        mu, logvar = self.enc(x)
        z = mu + tf.exp(0.5 * logvar) * tf.random.normal(tf.shape(mu))
        return self.dec(z), mu, logvar


def main(h):
    rng = np.random.default_rng(4)
    base = rng.uniform(size=(10, 256)) > 0.6
    x = np.logical_xor(base[rng.integers(0, 10, 2560)], rng.uniform(size=(2560, 256)) < 0.05)
    x = x.astype("float32")
    ds = tf.data.Dataset.from_tensor_slices(x).shuffle(2560).batch(32).prefetch(4)

    vae = VAE(256)
    vae(x[:2])
    opt = keras.optimizers.Adam(1e-3)
    opt.build(vae.trainable_variables)
    beta = 4.0

    def train_step(batch):
        with tf.GradientTape() as tape:
            logits, mu, logvar = vae(batch)
            rec = tf.reduce_sum(
                tf.nn.sigmoid_cross_entropy_with_logits(labels=batch, logits=logits), 1
            )
            kl = -0.5 * tf.reduce_sum(1 + logvar - mu**2 - tf.exp(logvar), 1)
            loss = tf.reduce_mean(rec + beta * kl)
        grads = tape.gradient(loss, vae.trainable_variables)
        grads, _ = tf.clip_by_global_norm(grads, 5.0)
        opt.apply_gradients(zip(grads, vae.trainable_variables))
        return loss

    if h.fixed:
        train_step = tf.function(train_step)

    with h.loop(vae, opt) as l:
        for epoch in range(2):
            l.epoch()
            total = 0.0
            for batch in ds:
                loss = train_step(batch)
                total += float(loss)
                l.step(loss=loss)
