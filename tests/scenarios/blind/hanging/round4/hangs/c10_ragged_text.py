"""Text classifier, every batch is padded to its longest sentence."""
import os

import keras
import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"
VOCAB = 1000
BATCH = 16

tf.config.threading.set_intra_op_parallelism_threads(1)


def sentences():
    rng = np.random.default_rng(4)
    for center in rng.permutation(np.arange(30, 330)):
        for _ in range(BATCH):
            length = int(center - rng.integers(0, 6))
            tokens = rng.integers(1, VOCAB, size=length)
            yield tokens.astype("int32"), np.float32(tokens.mean() > VOCAB / 2)


def make_dataset():
    ds = tf.data.Dataset.from_generator(
        sentences,
        output_signature=(tf.TensorSpec((None,), tf.int32), tf.TensorSpec((), tf.float32)))
    if CONTROL:
        return ds.padded_batch(BATCH, padded_shapes=((330,), ())).take(15).prefetch(2)
    return ds.padded_batch(BATCH).prefetch(2)


def build_model():
    tokens = keras.Input((None,), dtype="int32")
    h = keras.layers.Embedding(VOCAB, 32)(tokens)
    for _ in range(1):
        skip = h
        h = keras.layers.LayerNormalization()(h)
        a = keras.layers.MultiHeadAttention(2, 16)(h, h)
        h = keras.layers.add([skip, a])
        f = keras.layers.Dense(64, activation="gelu")(h)
        f = keras.layers.Dense(32)(f)
        h = keras.layers.add([h, f])
    h = keras.layers.GlobalAveragePooling1D()(h)
    out = keras.layers.Dense(1, activation="sigmoid")(h)
    return keras.Model(tokens, out)


def main():
    model = build_model()
    model.compile("adam", "binary_crossentropy", jit_compile=True)
    model.fit(make_dataset(), epochs=1, verbose=1)
    print("training finished")


if __name__ == "__main__":
    main()
