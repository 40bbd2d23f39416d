"""VAE on the digits with its own train_step, logging both parts of the loss."""
from common import *


class VAE(keras.Model):
    def __init__(self, latent=8):
        super().__init__()
        self.enc = keras.Sequential([L.Dense(128, activation="relu"), L.Dense(64, activation="relu")])
        self.mean, self.logvar = L.Dense(latent), L.Dense(latent)
        self.dec = keras.Sequential(
            [L.Dense(64, activation="relu"), L.Dense(128, activation="relu"), L.Dense(64, activation="sigmoid")]
        )
        self.trackers = {k: keras.metrics.Mean(name=k) for k in ("loss", "reconstruction_loss", "kl_loss")}

    @property
    def metrics(self):
        return list(self.trackers.values())

    def call(self, x, training=False):
        h = self.enc(x)
        m, lv = self.mean(h), self.logvar(h)
        z = m + tf.exp(0.5 * lv) * tf.random.normal(tf.shape(m)) if training else m
        return self.dec(z), m, lv

    def losses_of(self, x, training):
        out, m, lv = self(x, training=training)
        reconstruction = tf.reduce_mean(keras.losses.binary_crossentropy(x, out))
        kl = tf.reduce_mean(tf.reduce_sum(-0.5 * (1 + lv - tf.square(m) - tf.exp(lv)), axis=1))
        return {"loss": reconstruction + kl, "reconstruction_loss": reconstruction, "kl_loss": kl}

    def update(self, parts):
        for k, v in parts.items():
            self.trackers[k].update_state(v)
        return {k: t.result() for k, t in self.trackers.items()}

    def train_step(self, x):
        with tf.GradientTape() as tape:
            parts = self.losses_of(x, True)
        grads = tape.gradient(parts["loss"], self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return self.update(parts)

    def test_step(self, x):
        return self.update(self.losses_of(x, False))


def main(log):
    x, _ = load("digits")
    x = (x / 16.0).astype("float32")
    train = tf.data.Dataset.from_tensor_slices(x[:1500]).shuffle(1500, seed=1).batch(32)
    val = tf.data.Dataset.from_tensor_slices(x[1500:]).batch(256)
    model = VAE()
    model(x[:2])
    model.compile(optimizer=keras.optimizers.Adam(2e-3))
    model.fit(train, validation_data=val, epochs=12, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
