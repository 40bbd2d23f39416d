"""Tabular VAE for anomaly detection with a custom train_step; run_eagerly left from debugging."""
from harness import *


class VAE(keras.Model):
    def __init__(self, dim, latent=8):
        super().__init__()
        d = keras.layers.Dense
        self.enc = keras.Sequential([d(64, activation="relu"), keras.layers.BatchNormalization(),
                                     d(32, activation="relu")])
        self.mu, self.lv = d(latent), d(latent)
        self.dec = keras.Sequential([d(32, activation="relu"), keras.layers.BatchNormalization(),
                                     d(64, activation="relu"), d(dim)])
        self.total = keras.metrics.Mean(name="loss")
        self.rec, self.kl = keras.metrics.Mean(name="rec"), keras.metrics.Mean(name="kl")

    @property
    def metrics(self):
        return [self.total, self.rec, self.kl]

    def call(self, x, training=False):
        e = self.enc(x, training=training)
        mu, lv = self.mu(e), self.lv(e)
        z = mu + tf.exp(0.5 * lv) * tf.random.normal(tf.shape(mu))
        return self.dec(z, training=training), mu, lv

    def train_step(self, x):
        with tf.GradientTape() as tape:
            out, mu, lv = self(x, training=True)
            rec = tf.reduce_mean(tf.reduce_sum(tf.square(x - out), -1))
            kl = -0.5 * tf.reduce_mean(tf.reduce_sum(1 + lv - tf.square(mu) - tf.exp(lv), -1))
            loss = rec + 0.1 * kl
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.total.update_state(loss)
        self.rec.update_state(rec)
        self.kl.update_state(kl)
        return {m.name: m.result() for m in self.metrics}


def main(h):
    rng = np.random.default_rng(6)
    x = (rng.normal(size=(128 * 130, 5)) @ rng.normal(size=(5, 30))).astype("float32")
    ds = tf.data.Dataset.from_tensor_slices(x).shuffle(4096).batch(128).prefetch(2)
    model = VAE(30)
    model.compile(optimizer=keras.optimizers.Adam(1e-3), run_eagerly=not h.fixed)
    h.fit(model, ds)
