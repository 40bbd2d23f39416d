"""Digit images with labels of a careless crowd: three of four are random; the held-out labels are clean."""
from common import *


class Crowd(keras.utils.PyDataset):
    def __init__(self, x, y, batch, **kw):
        super().__init__(**kw)
        self.x, self.y, self.batch = x, y, batch
        self.rng = np.random.default_rng(0)
        self.on_epoch_end()

    def __len__(self):
        return len(self.x) // self.batch

    def __getitem__(self, i):
        pick = self.order[i * self.batch:(i + 1) * self.batch]
        x = self.x[pick] + self.rng.normal(0, 0.1, self.x[pick].shape)
        return x.astype("float32"), self.y[pick]

    def on_epoch_end(self):
        self.order = self.rng.permutation(len(self.x))


def main(log):
    x, y = load("digits")
    x, y = (x / 16.0).astype("float32"), y.astype("int32")
    rng = np.random.default_rng(8)
    order = rng.permutation(len(x))
    x, y = x[order], y[order]
    cut = 1440
    # every image was shown to five people of the crowd
    xs, ys = np.repeat(x[:cut], 5, axis=0), np.repeat(y[:cut], 5)
    careless = rng.random(len(ys)) < 0.75
    ys = np.where(careless, rng.integers(0, 10, len(ys)), ys)

    model = keras.Sequential([
        keras.Input((64,)),
        L.Dense(64, activation="relu", kernel_regularizer=keras.regularizers.L2(1e-4)),
        L.Dropout(0.4),
        L.Dense(10, activation="softmax"),
    ])
    model.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(Crowd(xs, ys, 120), epochs=7, validation_data=(x[cut:], y[cut:]), verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
