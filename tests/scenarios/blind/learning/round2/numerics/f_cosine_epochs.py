"""GRU over the rows of the digits, AdamW with a cosine schedule, fed by a generator."""
from common import *

EPOCHS = 10


class Rows(keras.utils.PyDataset):
    def __init__(self, x, y, batch, **kw):
        super().__init__(**kw)
        self.x, self.y, self.batch = x, y, batch
        self.rng = np.random.default_rng(0)
        self.order = np.arange(len(x))

    def __len__(self):
        return len(self.x) // self.batch

    def __getitem__(self, i):
        rows = self.order[i * self.batch : (i + 1) * self.batch]
        return self.x[rows], self.y[rows]

    def on_epoch_end(self):
        self.rng.shuffle(self.order)


def main(log):
    x, y = load("digits")
    x = (x.reshape(-1, 8, 8) / 16.0).astype("float32")
    inputs = keras.Input((8, 8))
    h = L.GRU(32)(inputs)
    h = L.Dropout(0.2)(h)
    model = keras.Model(inputs, L.Dense(10, activation="softmax")(h))
    schedule = keras.optimizers.schedules.CosineDecay(2e-3, decay_steps=EPOCHS)
    model.compile(
        optimizer=keras.optimizers.AdamW(schedule, weight_decay=1e-4),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    model.fit(
        Rows(x[:1440], y[:1440], 32), validation_data=(x[1440:], y[1440:]),
        epochs=EPOCHS, verbose=0, callbacks=log.callbacks(),
    )


if __name__ == "__main__":
    run(main)
