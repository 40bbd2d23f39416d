"""Anomaly detection in payments with a beta-VAE; beta is warmed up step by step."""
from harness import *

DIM, LATENT, BATCH, STEPS, WARM_UP = 40, 6, 128, 120, 12


class VAE(keras.Model):
    def __init__(self):
        super().__init__()
        self.enc = keras.Sequential(
            [
                keras.layers.Dense(64, activation="gelu"),
                keras.layers.LayerNormalization(),
                keras.layers.Dense(32, activation="gelu"),
                keras.layers.Dense(2 * LATENT),
            ]
        )
        self.dec = keras.Sequential(
            [
                keras.layers.Dense(32, activation="gelu"),
                keras.layers.LayerNormalization(),
                keras.layers.Dense(64, activation="gelu"),
                keras.layers.Dense(DIM),
            ]
        )

    def call(self, x):
        mean, logvar = tf.split(self.enc(x), 2, axis=-1)
        z = mean + tf.exp(0.5 * logvar) * tf.random.normal(tf.shape(mean))
        return self.dec(z), mean, logvar


def main(h):
    rng = np.random.default_rng(5)
    base = rng.normal(size=(LATENT, DIM))
    x = (rng.normal(size=(BATCH * STEPS, LATENT)) @ base).astype("float32")
    x += rng.normal(0, 0.1, x.shape).astype("float32")
    ds = tf.data.Dataset.from_tensor_slices(x).shuffle(2048).batch(BATCH).prefetch(2)

    vae = VAE()
    opt = keras.optimizers.Adam(1e-3)

    @tf.function
    def train_step(batch, beta):
        with tf.GradientTape() as tape:
            rec, mean, logvar = vae(batch, training=True)
            rec_loss = tf.reduce_mean(tf.reduce_sum(tf.square(batch - rec), axis=-1))
            kl = -0.5 * tf.reduce_sum(1 + logvar - tf.square(mean) - tf.exp(logvar), axis=-1)
            loss = rec_loss + beta * tf.reduce_mean(kl)
        grads = tape.gradient(loss, vae.trainable_variables)
        grads, _ = tf.clip_by_global_norm(grads, 5.0)
        opt.apply_gradients(zip(grads, vae.trainable_variables))
        return loss

    with h.loop(vae, opt) as l:
        l.epoch()
        for step, batch in enumerate(ds):
            beta = min(1.0, step / WARM_UP)
            if h.fixed:
                beta = tf.constant(beta, tf.float32)
            loss = train_step(batch, beta)
            l.step(loss=loss)
