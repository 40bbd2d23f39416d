"""Binary segmentation of photographs from a folder with a small U-Net."""
import glob
import tempfile

from harness import *

SIZE = 96


def write_photos(root, n=640, side=640):
    rng = np.random.default_rng(0)
    yy, xx = np.mgrid[:side, :side].astype("float32")
    pairs = []
    for _ in range(14):
        cx, cy, r = rng.uniform(150, 490), rng.uniform(150, 490), rng.uniform(60, 150)
        m = ((xx - cx) ** 2 + (yy - cy) ** 2 < r * r).astype("uint8")
        img = 90 + 80 * m + 25 * np.sin(xx / 17) + rng.normal(0, 12, (side, side))
        img = np.stack([img, img * 0.8, img * 0.6], -1).clip(0, 255).astype("uint8")
        pairs.append(
            (tf.io.encode_jpeg(img).numpy(), tf.io.encode_png(m[..., None] * 255).numpy())
        )
    os.makedirs(root + "/images")
    os.makedirs(root + "/masks")
    for i in range(n):
        a, b = pairs[i % len(pairs)]
        with open(f"{root}/images/{i:05d}.jpg", "wb") as f:
            f.write(a)
        with open(f"{root}/masks/{i:05d}.png", "wb") as f:
            f.write(b)


def load(img, mask):
    x = tf.io.decode_jpeg(tf.io.read_file(img), channels=3)
    y = tf.io.decode_png(tf.io.read_file(mask), channels=1)
    x = tf.image.resize(x, (SIZE, SIZE), method="bicubic") / 255.0
    y = tf.image.resize(y, (SIZE, SIZE), method="nearest")
    return x, tf.cast(y > 127, tf.float32)


def unet():
    i = keras.Input((SIZE, SIZE, 3))
    a = keras.layers.Conv2D(8, 3, padding="same", activation="relu")(i)
    b = keras.layers.MaxPooling2D()(a)
    b = keras.layers.Conv2D(16, 3, padding="same", activation="relu")(b)
    c = keras.layers.UpSampling2D()(b)
    c = keras.layers.Concatenate()([a, c])
    c = keras.layers.Conv2D(8, 3, padding="same", activation="relu")(c)
    o = keras.layers.Conv2D(1, 1, activation="sigmoid")(c)
    return keras.Model(i, o)


def main(h):
    root = tempfile.mkdtemp(dir=SCRATCH)
    write_photos(root)
    imgs = sorted(glob.glob(root + "/images/*.jpg"))
    masks = sorted(glob.glob(root + "/masks/*.png"))
    ds = tf.data.Dataset.from_tensor_slices((imgs, masks)).shuffle(len(imgs), seed=1)
    if h.fixed:
        ds = ds.map(load, num_parallel_calls=tf.data.AUTOTUNE)
        ds = ds.batch(8).prefetch(tf.data.AUTOTUNE)
    else:
        ds = ds.map(load).batch(8)
    model = unet()
    model.compile("adam", "binary_crossentropy")
    h.fit(model, ds)
