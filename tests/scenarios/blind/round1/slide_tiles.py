"""Histology: tiles of some slides, one .npz for each slide, read by a PyDataset."""
import tempfile

from harness import *


def make_slides(n_slides=5, n_tiles=600, size=64):
    root = tempfile.mkdtemp(dir=SCRATCH)
    rng = np.random.default_rng(3)
    files = []
    for s in range(n_slides):
        small = rng.integers(90, 230, (n_tiles, size // 4, size // 4, 3))
        tiles = small.repeat(4, 1).repeat(4, 2)
        tiles = (tiles + rng.integers(0, 4, tiles.shape)).astype("uint8")
        y = (tiles.mean((1, 2, 3)) > 161).astype("float32")
        f = os.path.join(root, f"slide_{s}.npz")
        np.savez_compressed(f, tiles=tiles, label=y)
        files.append(f)
    return files


class SlideTiles(keras.utils.PyDataset):
    def __init__(self, files, n_tiles, batch_size, h, seed=0, **kwargs):
        super().__init__(**kwargs)
        self.files, self.batch_size, self.h = files, batch_size, h
        self.rng = np.random.default_rng(seed)
        self.per_slide = n_tiles // batch_size
        self.n_tiles = n_tiles
        self.slides = None
        if h.fixed:
            self.slides = [self.read(f) for f in files]
        self.on_epoch_end()

    @staticmethod
    def read(f):
        with np.load(f) as z:
            return z["tiles"], z["label"]

    def __len__(self):
        return len(self.files) * self.per_slide

    def on_epoch_end(self):
        self.order = self.rng.permutation(len(self))
        self.tiles_of = [self.rng.permutation(self.n_tiles) for _ in self.files]

    def __getitem__(self, i):
        with self.h.clock("generator"):
            slide, part = divmod(int(self.order[i]), self.per_slide)
            if self.slides is not None:
                tiles, label = self.slides[slide]
            else:
                tiles, label = self.read(self.files[slide])
            b = self.batch_size
            idx = self.tiles_of[slide][part * b : (part + 1) * b]
            x = tiles[idx].astype("float32") / 255.0
            return x, label[idx]


def conv_bn(x, f, stride):
    x = keras.layers.Conv2D(f, 3, strides=stride, padding="same", use_bias=False)(x)
    x = keras.layers.BatchNormalization()(x)
    return keras.layers.ReLU()(x)


def main(h):
    files = make_slides()
    train = SlideTiles(files, 600, 50, h)
    inp = keras.Input((64, 64, 3))
    x = conv_bn(inp, 8, 2)
    x = conv_bn(x, 16, 2)
    x = conv_bn(x, 24, 2)
    x = keras.layers.GlobalAveragePooling2D()(x)
    out = keras.layers.Dense(1, activation="sigmoid")(x)
    model = keras.Model(inp, out)
    model.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy", metrics=["accuracy"])
    h.fit(model, train)
