"""SimCLR: two augmented views in train_step, EMA of the weights by the optimizer. In order."""
from harness import *


class SimCLR(keras.Model):
    def __init__(self):
        super().__init__()
        conv = keras.layers.Conv2D
        self.encoder = keras.Sequential(
            [
                keras.Input((32, 32, 3)),
                conv(32, 3, padding="same", activation="relu"),
                conv(64, 3, strides=2, padding="same", activation="relu"),
                conv(64, 3, padding="same", activation="relu"),
                keras.layers.GlobalAveragePooling2D(),
                keras.layers.Dense(64),
            ]
        )
        self.tracker = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.tracker]

    def augment(self, x):
        x = tf.cast(x, tf.float32) / 255.0
        x = tf.image.random_crop(x, (tf.shape(x)[0], 32, 32, 3))
        return tf.clip_by_value(x + tf.random.normal(tf.shape(x), stddev=0.05), 0.0, 1.0)

    def call(self, x):
        return self.encoder(x)

    def train_step(self, x):
        with tf.GradientTape() as tape:
            a = tf.math.l2_normalize(self.encoder(self.augment(x), training=True), 1)
            b = tf.math.l2_normalize(self.encoder(self.augment(x), training=True), 1)
            logits = tf.matmul(a, b, transpose_b=True) / 0.2
            target = tf.range(tf.shape(x)[0])
            ce = tf.nn.sparse_softmax_cross_entropy_with_logits
            loss = tf.reduce_mean(ce(target, logits) + ce(target, tf.transpose(logits))) / 2
        g = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(g, self.trainable_variables))
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}


def main(h):
    images = np.random.default_rng(0).integers(0, 255, (2560, 36, 36, 3)).astype("uint8")

    def batches():
        order = np.random.permutation(len(images))
        for k in range(0, len(order), 64):
            yield images[order[k : k + 64]]

    spec = tf.TensorSpec((64, 36, 36, 3), tf.uint8)
    ds = tf.data.Dataset.from_generator(h.gen(batches), output_signature=spec)
    ds = ds.prefetch(tf.data.AUTOTUNE)
    model = SimCLR()
    model.build((None, 32, 32, 3))
    model.compile(keras.optimizers.Adam(1e-3, use_ema=True, ema_momentum=0.99))
    h.fit(model, ds)
