"""A GAN after an old tutorial: generator.predict makes the fakes of each step."""
from harness import *

L = keras.layers


def main(h):
    gen = keras.Sequential([keras.Input((64,)), L.Dense(128), L.LeakyReLU(), L.Dense(256), L.LeakyReLU(),
                            L.Dense(784, activation="tanh"), L.Reshape((28, 28, 1))])
    disc = keras.Sequential([keras.Input((28, 28, 1)), L.Flatten(), L.Dense(256), L.LeakyReLU(),
                             L.Dense(128), L.LeakyReLU(), L.Dense(1)])
    d_opt, g_opt = keras.optimizers.Adam(2e-4, 0.5), keras.optimizers.Adam(2e-4, 0.5)
    d_opt.build(disc.trainable_variables)
    g_opt.build(gen.trainable_variables)
    bce = keras.losses.BinaryCrossentropy(from_logits=True)
    images = np.random.default_rng(0).uniform(-1, 1, (2000, 28, 28, 1)).astype("float32")

    @tf.function
    def train_d(real, fake):
        with tf.GradientTape() as tape:
            a, b = disc(real, training=True), disc(fake, training=True)
            loss = bce(tf.ones_like(a), a) + bce(tf.zeros_like(b), b)
        d_opt.apply_gradients(zip(tape.gradient(loss, disc.trainable_variables), disc.trainable_variables))
        return loss

    @tf.function
    def train_g(z):
        with tf.GradientTape() as tape:
            out = disc(gen(z, training=True), training=True)
            loss = bce(tf.ones_like(out), out)
        g_opt.apply_gradients(zip(tape.gradient(loss, gen.trainable_variables), gen.trainable_variables))
        return loss

    @tf.function
    def generate(z):
        return gen(z, training=False)

    batch = 32
    with h.loop(gen, g_opt) as l:
        l.epoch()
        for step in range(70):
            idx = np.random.randint(0, len(images), batch)
            noise = np.random.normal(0, 1, (batch, 64)).astype("float32")
            if h.fixed:
                fakes = generate(tf.constant(noise))
            else:
                with h.clock("predict"):
                    fakes = gen.predict(noise, verbose=0)
            d_loss = train_d(tf.constant(images[idx]), tf.convert_to_tensor(fakes))
            noise = np.random.normal(0, 1, (batch, 64)).astype("float32")
            g_loss = train_g(tf.constant(noise))
            if step % 20 == 0:
                print(f"{step} [D loss: {float(d_loss):.3f}] [G loss: {float(g_loss):.3f}]")
            l.step(loss=d_loss)
