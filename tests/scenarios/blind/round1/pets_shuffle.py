"""Pets: JPEG files in folders, decoded and then shuffled over the whole set."""
import tempfile

from harness import *

IMG = 64


def make_folder(n_files, n_unique=120, side=192):
    root = tempfile.mkdtemp(dir=SCRATCH)
    rng = np.random.default_rng(11)
    blobs = []
    for i in range(n_unique):
        small = rng.integers(0, 255, (12, 12, 3)).astype("float32")
        im = tf.image.resize(small, (side, side), "bicubic")
        im = tf.cast(tf.clip_by_value(im, 0, 255), tf.uint8)
        blobs.append(tf.io.encode_jpeg(im, quality=92).numpy())
    for c in ("cat", "dog"):
        os.makedirs(os.path.join(root, c))
    for i in range(n_files):
        with open(os.path.join(root, ("cat", "dog")[i % 2], f"{i:05d}.jpg"), "wb") as f:
            f.write(blobs[i % n_unique])
    return root


def main(h):
    n = 9000
    root = make_folder(n)

    def load(path):
        label = tf.cast(tf.strings.regex_full_match(path, ".*/dog/.*"), tf.float32)
        im = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        im = tf.image.resize(im, (IMG, IMG)) / 255.0
        return im, label

    files = tf.data.Dataset.list_files(root + "/*/*.jpg", shuffle=False)
    if h.fixed:
        ds = files.shuffle(n, seed=0).map(load, num_parallel_calls=tf.data.AUTOTUNE)
    else:
        ds = files.map(load, num_parallel_calls=tf.data.AUTOTUNE).shuffle(n, seed=0)
    ds = ds.batch(32, drop_remainder=True).repeat().prefetch(tf.data.AUTOTUNE)

    model = keras.Sequential(
        [
            keras.Input((IMG, IMG, 3)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    # short "epochs", to see the curves move
    h.fit(model, ds, steps_per_epoch=30)
