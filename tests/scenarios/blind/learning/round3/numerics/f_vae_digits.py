"""Variational autoencoder on the digits with its own train_step."""
from common import *


class Sampling(L.Layer):
    def call(self, inputs):
        mean, log_var = inputs
        return mean + tf.exp(0.5 * log_var) * tf.random.normal(tf.shape(mean))


class VAE(keras.Model):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        self.total = keras.metrics.Mean(name="loss")
        self.rec = keras.metrics.Mean(name="reconstruction_loss")
        self.kl = keras.metrics.Mean(name="kl_loss")

    @property
    def metrics(self):
        return [self.total, self.rec, self.kl]

    def call(self, x):
        return self.decoder(self.encoder(x)[2])

    def train_step(self, x):
        with tf.GradientTape() as tape:
            mean, log_var, z = self.encoder(x)
            out = self.decoder(z)
            rec = tf.reduce_mean(keras.losses.binary_crossentropy(x, out))
            kl = -0.5 * tf.reduce_sum(1 + log_var - tf.square(mean) - tf.exp(log_var))
            loss = rec + kl
        grads = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
        self.total.update_state(loss)
        self.rec.update_state(rec)
        self.kl.update_state(kl)
        return {m.name: m.result() for m in self.metrics}


def main(log):
    x, _ = load("digits")
    x = (x / 16.0).astype("float32")

    inp = L.Input((64,))
    h = L.Dense(64, activation="relu")(inp)
    mean, log_var = L.Dense(4)(h), L.Dense(4)(h)
    encoder = keras.Model(inp, [mean, log_var, Sampling()([mean, log_var])])
    decoder = keras.Sequential([L.Input((4,)), L.Dense(64, activation="relu"), L.Dense(64, activation="sigmoid")])

    vae = VAE(encoder, decoder)
    vae.compile(optimizer=keras.optimizers.Adam(2e-3))
    vae.fit(x, batch_size=64, epochs=12, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
