"""Action classifier on short clips, decoded by an external decoder process."""
import os
import subprocess
import sys

import keras
import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"

# stands in for `ffmpeg -i clip.mp4 -f rawvideo -`: frames on stdout, messages on stderr
DECODER = r"""
import array, random, signal, sys
signal.alarm(115)
idx, damaged = int(sys.argv[1]), sys.argv[2] == "1"
rnd = random.Random(idx)
for packet in range(3000 if damaged else 3):
    sys.stderr.write("[h264 @ 0x55d0c8] error while decoding MB %d 17, bytestream -7\n" % packet)
sys.stderr.flush()
sys.stdout.buffer.write(array.array("f", [rnd.random() for _ in range(8 * 64)]).tobytes())
"""

DAMAGED = set() if CONTROL else {101, 102}


def decode(idx):
    proc = subprocess.Popen(
        [sys.executable, "-S", "-c", DECODER, str(idx), "1" if idx in DAMAGED else "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    raw = proc.stdout.read()
    messages = proc.stderr.read()
    if proc.wait() != 0:
        raise IOError("decoder failed: %r" % messages[-200:])
    return np.frombuffer(raw, dtype="float32").reshape(8, 64)


class Clips(keras.utils.PyDataset):
    def __init__(self, ids, batch_size=8, **kw):
        super().__init__(**kw)
        self.ids = ids
        self.batch_size = batch_size

    def __len__(self):
        return len(self.ids) // self.batch_size

    def __getitem__(self, i):
        ids = self.ids[i * self.batch_size:(i + 1) * self.batch_size]
        x = np.stack([decode(j) for j in ids])
        y = np.array([j % 4 for j in ids])
        return x, y


def main():
    keras.utils.set_random_seed(3)
    train = Clips(list(range(160)), workers=2, max_queue_size=4)
    model = keras.Sequential([
        keras.Input((8, 64)),
        keras.layers.Conv1D(16, 3, activation="relu"),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(4),
    ])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(train, epochs=2, shuffle=False, verbose=2)
    print("trained")


if __name__ == "__main__":
    main()
