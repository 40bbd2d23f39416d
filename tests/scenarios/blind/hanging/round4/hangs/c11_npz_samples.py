"""Train on spectrogram frames which are stored together in one compressed archive."""
import os
import tempfile

import keras
import numpy as np

CONTROL = os.environ.get("BLIND_CONTROL") == "1"
SAMPLES = 4800
DIM = 1024


def prepare_archive():
    directory = os.path.join(tempfile.gettempdir(), "c11_frames")
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "frames_%d.npz" % os.getuid())
    rng = np.random.default_rng(9)
    frames = np.round(rng.normal(size=(SAMPLES, DIM)).astype("float32"))
    labels = (frames[:, :8].sum(axis=1) > 0).astype("float32")
    np.savez_compressed(path, frames=frames, labels=labels)
    return path


class FrameDataset(keras.utils.PyDataset):
    def __init__(self, path, batch_size=16, **kwargs):
        super().__init__(**kwargs)
        self.path = path
        self.batch_size = batch_size
        self.cached = None
        if CONTROL:
            archive = np.load(path)
            self.cached = archive["frames"], archive["labels"]

    def __len__(self):
        return SAMPLES // self.batch_size

    def read_sample(self, i):
        if self.cached is not None:
            return self.cached[0][i], self.cached[1][i]
        archive = np.load(self.path)
        frame = archive["frames"][i]
        label = archive["labels"][i]
        return frame, label

    def __getitem__(self, index):
        start = index * self.batch_size
        pairs = [self.read_sample(i) for i in range(start, start + self.batch_size)]
        return np.stack([p[0] for p in pairs]), np.stack([p[1] for p in pairs])


def main():
    path = prepare_archive()
    model = keras.Sequential([
        keras.Input((DIM,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ])
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    model.fit(FrameDataset(path), epochs=2, verbose=1)
    print("training finished")


if __name__ == "__main__":
    main()
