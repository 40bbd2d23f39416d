"""Click-through model over a CSV log: 8 numbers, 8 categories, hashed and embedded."""
from harness import *

NUM, CAT, BATCH, LINES, BUCKETS = 8, 8, 256, 38400, 1000


def write_csv(path, rng):
    nums = rng.random((LINES, NUM)).round(4)
    cats = rng.integers(0, 5000, (LINES, CAT))
    clicks = (nums[:, 0] + rng.normal(0, 0.3, LINES) > 0.6).astype(int)
    with open(path, "w") as f:
        f.write(",".join(["click"] + [f"n{i}" for i in range(NUM)] + [f"c{i}" for i in range(CAT)]))
        f.write("\n")
        for y, a, b in zip(clicks, nums, cats):
            f.write(f"{y}," + ",".join(map(str, a)) + "," + ",".join(f"k{v:x}" for v in b) + "\n")


def parse(line):
    fields = tf.io.decode_csv(line, [[0]] + [[0.0]] * NUM + [[""]] * CAT)
    label = fields[0]
    dense = tf.stack([tf.math.log1p(v) for v in fields[1 : 1 + NUM]], axis=-1)
    cats = tf.stack(
        [tf.strings.to_hash_bucket_fast(c, BUCKETS) for c in fields[1 + NUM :]], axis=-1
    )
    return {"numbers": dense, "cats": cats}, label


def main(h):
    folder = tempfile.mkdtemp(dir=SCRATCH)
    path = os.path.join(folder, "train.csv")
    write_csv(path, np.random.default_rng(0))

    ds = tf.data.TextLineDataset(path).skip(1)
    if h.fixed:
        ds = ds.batch(BATCH, drop_remainder=True).map(parse)
    else:
        ds = ds.map(parse).batch(BATCH, drop_remainder=True)
    ds = ds.prefetch(1)

    dense = keras.Input((NUM,), name="numbers")
    cats = keras.Input((CAT,), dtype="int64", name="cats")
    e = keras.layers.Flatten()(keras.layers.Embedding(BUCKETS, 8)(cats))
    x = keras.layers.Concatenate()([dense, e])
    x = keras.layers.Dense(32, activation="relu")(x)
    x = keras.layers.Dense(16, activation="relu")(x)
    out = keras.layers.Dense(1, activation="sigmoid")(x)
    model = keras.Model({"numbers": dense, "cats": cats}, out)
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    h.fit(model, ds)
