"""VAE with a learned output scale and KL annealing from 0 to 1 over the epochs."""
from common import *

EPOCHS = 12


class BetaVAE(keras.Model):
    def __init__(self, latent=6):
        super().__init__()
        self.enc = keras.Sequential([L.Dense(128, activation="relu"), L.Dense(64, activation="relu")])
        self.mean, self.logvar = L.Dense(latent), L.Dense(latent)
        self.dec = keras.Sequential([L.Dense(64, activation="relu"), L.Dense(128, activation="relu"), L.Dense(64)])
        self.log_sigma = self.add_weight(shape=(), initializer=keras.initializers.Constant(-1.7), name="log_sigma")
        self.beta = self.add_weight(shape=(), initializer="zeros", trainable=False, name="beta")
        self.trackers = {k: keras.metrics.Mean(name=k) for k in ("loss", "nll", "kl")}

    @property
    def metrics(self):
        return list(self.trackers.values())

    def call(self, x, training=False):
        h = self.enc(x)
        m, lv = self.mean(h), tf.clip_by_value(self.logvar(h), -8.0, 8.0)
        z = m + tf.exp(0.5 * lv) * tf.random.normal(tf.shape(m))
        return self.dec(z), m, lv

    def parts(self, x, training):
        out, m, lv = self(x, training=training)
        ls = tf.convert_to_tensor(self.log_sigma)
        nll = tf.reduce_mean(tf.reduce_sum(0.5 * tf.square((x - out) / tf.exp(ls)) + ls + 0.919, axis=1))
        kl = tf.reduce_mean(tf.reduce_sum(-0.5 * (1 + lv - tf.square(m) - tf.exp(lv)), axis=1))
        return {"loss": nll + self.beta * kl, "nll": nll, "kl": kl}

    def update(self, parts):
        for k, v in parts.items():
            self.trackers[k].update_state(v)
        return {k: t.result() for k, t in self.trackers.items()}

    def train_step(self, x):
        with tf.GradientTape() as tape:
            parts = self.parts(x, True)
        grads = tape.gradient(parts["loss"], self.trainable_variables)
        grads, _ = tf.clip_by_global_norm(grads, 20.0)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return self.update(parts)

    def test_step(self, x):
        return self.update(self.parts(x, False))


class Anneal(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.model.beta.assign(max(0.0, min(1.0, (epoch - 3) / 6)))


def main(log):
    x, _ = load("digits")
    x = (x / 16.0).astype("float32")
    train = tf.data.Dataset.from_tensor_slices(x[:1500]).shuffle(1500, seed=1).batch(32)
    val = tf.data.Dataset.from_tensor_slices(x[1500:]).batch(256)
    model = BetaVAE()
    model(x[:2])
    model.compile(optimizer=keras.optimizers.Adam(2e-3))
    model.fit(train, validation_data=val, epochs=EPOCHS, verbose=0, callbacks=[Anneal(), *log.callbacks()])


if __name__ == "__main__":
    run(main)
