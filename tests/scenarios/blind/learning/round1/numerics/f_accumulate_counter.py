"""Denoising autoencoder with gradient accumulation over four batches in a train_step of its own."""
from common import *


class Denoiser(keras.Model):
    def __init__(self, every=4):
        super().__init__()
        self.enc = keras.Sequential([keras.Input((64,)), L.Dense(64, activation="relu"), L.Dense(24, activation="relu")])
        self.dec = keras.Sequential([keras.Input((24,)), L.Dense(64, activation="relu"), L.Dense(64)])
        self.every = every
        self.seen = 0
        self.acc = [tf.Variable(tf.zeros(v.shape), trainable=False) for v in self.enc.trainable_variables + self.dec.trainable_variables]
        self.loss_tracker = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.loss_tracker]

    def call(self, x):
        return self.dec(self.enc(x))

    def train_step(self, data):
        x = data
        noisy = x + 0.1 * tf.random.normal(tf.shape(x))
        variables = self.enc.trainable_variables + self.dec.trainable_variables
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(noisy) - x))
        grads = tape.gradient(loss, variables)
        for a, g in zip(self.acc, grads):
            a.assign_add(g / self.every)

        self.seen += 1
        if self.seen % self.every == 0:
            self.optimizer.apply_gradients(zip([tf.convert_to_tensor(a) for a in self.acc], variables))
            for a in self.acc:
                a.assign(tf.zeros_like(a))

        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}


def main(log):
    x, _ = load("digits")
    x = (x / 16.0).astype("float32")
    model = Denoiser()
    model.compile(optimizer=keras.optimizers.Adam(5e-3))
    model.fit(x, batch_size=32, epochs=6, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
