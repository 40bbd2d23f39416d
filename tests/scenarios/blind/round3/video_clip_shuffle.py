"""Action recognition on short clips in a TFRecord; a shuffle buffer of decoded clips."""
import tempfile
from harness import *

T = 8


def write(path):
    rng = np.random.default_rng(1)
    yy, xx = np.mgrid[0:360, 0:640]
    with tf.io.TFRecordWriter(path) as w:
        for i in range(24):
            frames = []
            for t in range(T):
                img = np.stack([(xx + 9 * t + 20 * i) % 256, (yy * 2 + 5 * t) % 256, (xx + yy) // 4 % 256], -1)
                img = np.clip(img + rng.integers(-2, 3, img.shape), 0, 255).astype("uint8")
                frames.append(tf.io.encode_jpeg(img, quality=75).numpy())
            w.write(tf.train.Example(features=tf.train.Features(feature={
                "frames": tf.train.Feature(bytes_list=tf.train.BytesList(value=frames)),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 5])),
            })).SerializeToString())


def parse(rec):
    ex = tf.io.parse_single_example(rec, {
        "frames": tf.io.FixedLenFeature([T], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)})

    def one(j):
        return tf.image.resize(tf.io.decode_jpeg(j, channels=3), (48, 48)) / 255.0

    clip = tf.map_fn(one, ex["frames"], fn_output_signature=tf.float32)
    return tf.ensure_shape(clip, (T, 48, 48, 3)), ex["label"]


def main(h):
    path = os.path.join(tempfile.mkdtemp(dir=SCRATCH), "clips.tfrecord")
    write(path)
    ds = tf.data.TFRecordDataset(path).repeat()
    if h.fixed:
        ds = ds.shuffle(400).map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    else:
        ds = ds.map(parse, num_parallel_calls=tf.data.AUTOTUNE).shuffle(400)
    ds = ds.batch(4).prefetch(tf.data.AUTOTUNE)

    inp = keras.Input((T, 48, 48, 3))
    x = keras.layers.Conv3D(8, 3, strides=2, activation="relu")(inp)
    x = keras.layers.Conv3D(16, 3, strides=2, activation="relu")(x)
    x = keras.layers.GlobalAveragePooling3D()(x)
    model = keras.Model(inp, keras.layers.Dense(5)(x))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    h.fit(model, ds, steps_per_epoch=30)
