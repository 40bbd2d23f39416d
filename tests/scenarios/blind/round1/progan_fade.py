"""Progressive GAN, the step from 8x8 to 16x16: the new block is faded in by alpha."""
from harness import *

LATENT = 32


def upblock(ch):
    return keras.Sequential(
        [
            keras.layers.UpSampling2D(),
            keras.layers.Conv2D(ch, 3, padding="same"),
            keras.layers.LeakyReLU(negative_slope=0.2),
        ]
    )


class Generator(keras.Model):
    def __init__(self):
        super().__init__()
        self.fc = keras.layers.Dense(4 * 4 * 16)
        self.b8 = upblock(16)
        self.b16 = upblock(12)
        self.rgb8 = keras.layers.Conv2D(3, 1, activation="tanh")
        self.rgb16 = keras.layers.Conv2D(3, 1, activation="tanh")
        self.up = keras.layers.UpSampling2D()

    def call(self, z, alpha):
        x = tf.reshape(self.fc(z), (-1, 4, 4, 16))
        x8 = self.b8(x)
        old = self.up(self.rgb8(x8))
        new = self.rgb16(self.b16(x8))
        return (1.0 - alpha) * old + alpha * new


class Critic(keras.Model):
    def __init__(self):
        super().__init__()
        self.from16 = keras.layers.Conv2D(12, 1)
        self.c16 = keras.layers.Conv2D(16, 3, padding="same", activation="leaky_relu")
        self.pool = keras.layers.AveragePooling2D(2)
        self.from8 = keras.layers.Conv2D(16, 1)
        self.c8 = keras.layers.Conv2D(16, 3, padding="same", activation="leaky_relu")
        self.flat = keras.layers.Flatten()
        self.out = keras.layers.Dense(1)

    def call(self, x, alpha):
        new = self.pool(self.c16(self.from16(x)))
        old = self.from8(self.pool(x))
        y = (1.0 - alpha) * old + alpha * new
        return self.out(self.flat(self.pool(self.c8(y))))


def main(h):
    rng = np.random.default_rng(8)
    low = rng.uniform(-1, 1, (1280, 4, 4, 3)).astype("float32")
    images = low.repeat(4, 1).repeat(4, 2)
    ds = tf.data.Dataset.from_tensor_slices(images).shuffle(1280).batch(16).prefetch(2)

    g, d = Generator(), Critic()
    g_opt = keras.optimizers.Adam(1e-3, beta_1=0.0, beta_2=0.99)
    d_opt = keras.optimizers.Adam(1e-3, beta_1=0.0, beta_2=0.99)
    d(g(tf.zeros((1, LATENT)), alpha=0.5), alpha=0.5)
    g_opt.build(g.trainable_variables)
    d_opt.build(d.trainable_variables)

    @tf.function
    def train_step(real, alpha):
        z = tf.random.normal((tf.shape(real)[0], LATENT))
        with tf.GradientTape() as gt, tf.GradientTape() as dt:
            fake = g(z, alpha=alpha)
            s_fake, s_real = d(fake, alpha=alpha), d(real, alpha=alpha)
            d_loss = tf.reduce_mean(tf.nn.softplus(s_fake) + tf.nn.softplus(-s_real))
            g_loss = tf.reduce_mean(tf.nn.softplus(-s_fake))
        dg = dt.gradient(d_loss, d.trainable_variables)
        gg = gt.gradient(g_loss, g.trainable_variables)
        d_opt.apply_gradients(zip(dg, d.trainable_variables))
        g_opt.apply_gradients(zip(gg, g.trainable_variables))
        return d_loss, g_loss

    fade_steps = 80
    step = 0
    with h.loop(g, g_opt) as l:
        for epoch in range(1):
            l.epoch()
            for real in ds:
                alpha = min(1.0, (step // 16 + 1) * 16 / fade_steps)  # a new alpha every 16 steps
                if h.fixed:
                    alpha = tf.constant(alpha, tf.float32)
                d_loss, g_loss = train_step(real, alpha)
                step += 1
                l.step(loss=d_loss)
