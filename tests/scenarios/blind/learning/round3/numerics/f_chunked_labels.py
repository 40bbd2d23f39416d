"""Digits from a file that is read in chunks; the class names are encoded by the generator."""
from common import *

NAMES = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])


def factorize(values):
    codes = {v: i for i, v in enumerate(dict.fromkeys(values))}
    return np.array([codes[v] for v in values])


class Chunks(keras.utils.PyDataset):
    def __init__(self, x, names, size):
        super().__init__()
        self.x, self.names, self.size = x, names, size
        self.order = np.arange(len(x))

    def __len__(self):
        return len(self.x) // self.size

    def __getitem__(self, i):
        rows = self.order[i * self.size:(i + 1) * self.size]
        return self.x[rows], factorize(self.names[rows])

    def on_epoch_end(self):
        np.random.shuffle(self.order)


def main(log):
    x, y = load("digits")
    x, names = (x.reshape(-1, 8, 8, 1) / 16).astype("float32"), NAMES[y]
    order = np.random.permutation(len(x))
    model = keras.Sequential([
        keras.Input((8, 8, 1)),
        L.Conv2D(16, 3, activation="relu"), L.Conv2D(16, 3, activation="relu"),
        L.Flatten(), L.Dense(32, activation="relu"), L.Dense(10, activation="softmax"),
    ])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(Chunks(x[order], names[order], 64), epochs=8, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
