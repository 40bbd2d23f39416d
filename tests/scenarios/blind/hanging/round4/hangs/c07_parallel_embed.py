"""Compute embeddings with a frozen backbone in worker processes, then train a head."""
import multiprocessing
import os
import signal

import keras
import numpy as np

CONTROL = os.environ.get("BLIND_CONTROL") == "1"
backbone = None


def build_backbone():
    keras.utils.set_random_seed(1)
    return keras.Sequential([
        keras.Input((32, 32, 3)),
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.MaxPooling2D(4),
        keras.layers.Flatten(),
    ])


def embed(images):
    return backbone.predict(images, batch_size=50, verbose=0)


def main():
    global backbone
    backbone = build_backbone()
    rng = np.random.default_rng(11)
    images = rng.random((600, 32, 32, 3)).astype("float32")
    labels = (images.mean(axis=(1, 2, 3)) > 0.5).astype("float32")
    print("embedding size:", embed(images[:50]).shape[1], flush=True)

    chunks = np.array_split(images, 6)
    if CONTROL:
        parts = [embed(chunk) for chunk in chunks]
    else:
        ctx = multiprocessing.get_context("fork")
        with ctx.Pool(2, initializer=signal.alarm, initargs=(180,)) as pool:
            parts = pool.map(embed, chunks)
    features = np.concatenate(parts)

    head = keras.Sequential([
        keras.Input((features.shape[1],)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ])
    head.compile("adam", "binary_crossentropy")
    head.fit(features, labels, epochs=5, verbose=2)
    print("training finished")


if __name__ == "__main__":
    main()
