"""Transfer from digits 0-4 to digits 5-9: frozen base first, then all of it; mixup, label smoothing, bfloat16."""
from common import *


class Mixup(keras.utils.PyDataset):
    def __init__(self, x, y, batch, **kw):
        super().__init__(**kw)
        self.x, self.y, self.batch, self.rng = x, y, batch, np.random.default_rng(0)

    def __len__(self):
        return len(self.x) // self.batch

    def __getitem__(self, i):
        a = self.rng.integers(0, len(self.x), self.batch)
        b = self.rng.integers(0, len(self.x), self.batch)
        w = self.rng.beta(0.8, 0.8, self.batch).astype("float32")
        wx = w[:, None, None, None]
        return wx * self.x[a] + (1 - wx) * self.x[b], w[:, None] * self.y[a] + (1 - w[:, None]) * self.y[b]


def main(log):
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    x, y = load("digits")
    x = (x.reshape(-1, 8, 8, 1) / 16.0).astype("float32")
    old, new = y < 5, y >= 5
    inputs = keras.Input((8, 8, 1))
    h = L.Conv2D(16, 3, padding="same", use_bias=False)(inputs)
    h = L.Activation("relu")(L.BatchNormalization(momentum=0.8)(h))
    h = L.MaxPooling2D()(h)
    h = L.Conv2D(32, 3, padding="same", use_bias=False)(h)
    h = L.Activation("relu")(L.BatchNormalization(momentum=0.8)(h))
    base = keras.Model(inputs, L.GlobalAveragePooling2D()(h), name="base")
    source = keras.Sequential([base, L.Dense(5, activation="softmax", dtype="float32")])
    source.compile("adam", "sparse_categorical_crossentropy")
    source.fit(x[old], y[old], epochs=4, batch_size=32, verbose=0)

    xn, yn = x[new], np.eye(5, dtype="float32")[y[new] - 5]
    train, val = Mixup(xn[:680], yn[:680], 32), (xn[680:], yn[680:])
    base.trainable = False
    inputs = keras.Input((8, 8, 1))
    h = L.Dropout(0.3)(base(inputs, training=False))
    model = keras.Model(inputs, L.Dense(5, activation="softmax", dtype="float32")(h))
    loss = keras.losses.CategoricalCrossentropy(label_smoothing=0.2)
    callbacks = log.callbacks()
    model.compile(keras.optimizers.Adam(2e-3), loss, metrics=["accuracy"])
    model.fit(train, validation_data=val, epochs=3, verbose=0, callbacks=callbacks)

    base.trainable = True
    schedule = keras.optimizers.schedules.CosineDecay(0.0, 6 * len(train) - 40, warmup_target=2e-3, warmup_steps=40)
    model.compile(keras.optimizers.Adam(schedule), loss, metrics=["accuracy"])
    model.fit(train, validation_data=val, initial_epoch=3, epochs=9, verbose=0, callbacks=callbacks)


if __name__ == "__main__":
    run(main)
