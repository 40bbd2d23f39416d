"""Transfer learning in two phases: the head first, then the last blocks of MobileNet."""
from harness import *

SIDE, CLASSES, BATCH = 96, 4, 16


class Learning(keras.callbacks.Callback):
    """Keeps the losses for a plot, draws them as text at the end."""

    def __init__(self, h):
        super().__init__()
        self.h, self.losses = h, []

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(logs["loss"])

    def on_epoch_end(self, epoch, logs=None):
        with self.h.clock("callback"):
            top = max(self.losses)
            self.plot = "\n".join("#" * int(40 * v / top) for v in self.losses)


def main(h):
    keras.utils.set_random_seed(1)
    rng = np.random.default_rng(1)
    bank = rng.integers(0, 255, (200, SIDE, SIDE, 3), dtype="uint8")
    labels = rng.integers(0, CLASSES, 200)

    def photos():
        order = np.random.default_rng(0).integers(0, 200, 44 * BATCH)
        for i in order:
            im = bank[i]
            if i % 2:
                im = im[:, ::-1]
            yield im, labels[i]

    spec = (tf.TensorSpec((SIDE, SIDE, 3), tf.uint8), tf.TensorSpec((), tf.int64))
    ds = tf.data.Dataset.from_generator(h.gen(photos), output_signature=spec)
    ds = ds.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)

    base = keras.applications.MobileNet(
        (SIDE, SIDE, 3), alpha=0.25, include_top=False, weights=None
    )
    base.trainable = False
    inp = keras.Input((SIDE, SIDE, 3))
    x = keras.layers.Rescaling(1 / 127.5, -1)(inp)
    x = base(x, training=False)
    x = keras.layers.GlobalAveragePooling2D()(x)
    x = keras.layers.Dropout(0.3)(x)
    out = keras.layers.Dense(CLASSES, activation="softmax")(x)
    model = keras.Model(inp, out)

    loss = "sparse_categorical_crossentropy"
    model.compile(keras.optimizers.Adam(1e-3), loss, metrics=["accuracy"])
    model.fit(ds.take(4), epochs=1, verbose=0)  # phase 1, not of interest here

    base.trainable = True
    for layer in base.layers[:-18]:
        layer.trainable = False
    model.compile(keras.optimizers.Adam(1e-5), loss, metrics=["accuracy"])
    h.fit(model, ds, callbacks=[Learning(h)])
