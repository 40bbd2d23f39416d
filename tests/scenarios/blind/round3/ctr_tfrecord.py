"""Click-through trainer: gzip TFRecord shards, 13 dense + 26 categorical columns."""
import shutil
import tempfile

from harness import *

CAT, DENSE, BUCKETS = 26, 13, 2000


def write_shards(folder, per_shard=5000, shards=12):
    rng = np.random.default_rng(7)
    first = os.path.join(folder, "part-0.tfrecord.gz")
    with tf.io.TFRecordWriter(first, "GZIP") as w:
        for _ in range(per_shard):
            f = {f"I{i}": tf.train.Feature(float_list=tf.train.FloatList(value=[rng.random()]))
                 for i in range(DENSE)}
            ids = rng.integers(0, BUCKETS, CAT)
            for i in range(CAT):
                f[f"C{i}"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[int(ids[i])]))
            f["label"] = tf.train.Feature(
                float_list=tf.train.FloatList(value=[float(ids[0] % 2)]))
            w.write(tf.train.Example(features=tf.train.Features(feature=f)).SerializeToString())
    files = [first]
    for s in range(1, shards):
        files.append(os.path.join(folder, f"part-{s}.tfrecord.gz"))
        shutil.copy(first, files[-1])
    return files


SPEC = {f"I{i}": tf.io.FixedLenFeature([], tf.float32, 0.0) for i in range(DENSE)}
SPEC.update({f"C{i}": tf.io.FixedLenFeature([], tf.int64, 0) for i in range(CAT)})
SPEC["label"] = tf.io.FixedLenFeature([], tf.float32)


def split(ex):
    dense = tf.stack([tf.math.log1p(ex[f"I{i}"]) for i in range(DENSE)], -1)
    cats = tf.stack([ex[f"C{i}"] + i * BUCKETS for i in range(CAT)], -1)
    return {"numeric": dense, "cats": cats}, ex["label"]


def parse_one(s):
    return split(tf.io.parse_single_example(s, SPEC))


def parse_many(s):
    return split(tf.io.parse_example(s, SPEC))


def main(h):
    files = write_shards(tempfile.mkdtemp(dir=SCRATCH))
    ds = tf.data.TFRecordDataset(files, compression_type="GZIP").shuffle(2000)
    if h.fixed:
        ds = ds.batch(256, drop_remainder=True)
        ds = ds.map(parse_many, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    else:
        ds = ds.map(parse_one).batch(256, drop_remainder=True)

    dense = keras.Input((DENSE,), name="numeric")
    cats = keras.Input((CAT,), dtype="int64", name="cats")
    e = keras.layers.Embedding(CAT * BUCKETS, 4)(cats)
    x = keras.layers.Concatenate()([keras.layers.Flatten()(e), dense])
    for n in (64, 32):
        x = keras.layers.Dense(n, activation="relu")(x)
    model = keras.Model({"numeric": dense, "cats": cats},
                        keras.layers.Dense(1, activation="sigmoid")(x))
    model.compile("sgd", "binary_crossentropy", metrics=["AUC"])
    h.fit(model, ds)
