"""Classifier over TFRecord shards; the trainer shuffles what it has decoded."""
import tempfile

from harness import *

SPEC = {
    "image": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
}
N, SHARDS = 13500, 6


def write_shards(root):
    rng = np.random.default_rng(7)
    jpegs = []
    for _ in range(90):
        base = rng.uniform(0, 255, (12, 12, 3))
        img = np.kron(base, np.ones((10, 10, 1))) + rng.normal(0, 8, (120, 120, 3))
        jpegs.append(tf.io.encode_jpeg(img.clip(0, 255).astype("uint8")).numpy())
    for s in range(SHARDS):
        with tf.io.TFRecordWriter(f"{root}/train-{s:02d}.tfrecord") as w:
            for i in range(N // SHARDS):
                k = int(rng.integers(90))
                f = {
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[jpegs[k]])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[k % 10])),
                }
                ex = tf.train.Example(features=tf.train.Features(feature=f))
                w.write(ex.SerializeToString())


def parse(record):
    ex = tf.io.parse_single_example(record, SPEC)
    x = tf.io.decode_jpeg(ex["image"], channels=3)
    x = tf.image.resize(x, (56, 56)) / 255.0
    x = tf.image.random_crop(x, (48, 48, 3))
    x = tf.image.random_flip_left_right(x)
    return tf.image.random_brightness(x, 0.1), ex["label"]


def main(h):
    root = tempfile.mkdtemp(dir=SCRATCH)
    write_shards(root)
    files = tf.data.Dataset.list_files(root + "/*.tfrecord")
    ds = files.interleave(tf.data.TFRecordDataset, cycle_length=3)
    if h.fixed:
        ds = ds.shuffle(N).repeat()
        ds = ds.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    else:
        ds = ds.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        ds = ds.shuffle(N).repeat()
    ds = ds.batch(16).prefetch(tf.data.AUTOTUNE)
    model = keras.Sequential(
        [
            keras.Input((48, 48, 3)),
            keras.layers.Conv2D(8, 3, strides=2, activation="relu"),
            keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    h.fit(model, ds, steps_per_epoch=50)
