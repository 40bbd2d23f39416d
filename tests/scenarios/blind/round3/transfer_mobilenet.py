"""Transfer learning as in the tutorial: frozen MobileNetV2, augmentation inside of the model. Healthy."""
from harness import *

L = keras.layers


def main(h):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (480, 96, 96, 3), dtype=np.uint8)
    labels = rng.integers(0, 2, 480)
    ds = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(480).batch(16)
    ds = ds.prefetch(tf.data.AUTOTUNE)

    base = keras.applications.MobileNetV2((96, 96, 3), alpha=0.35, include_top=False, weights=None)
    base.trainable = False
    inp = keras.Input((96, 96, 3))
    x = keras.Sequential([L.RandomFlip("horizontal"), L.RandomRotation(0.2)])(inp)
    x = L.Rescaling(1 / 127.5, offset=-1)(x)
    x = base(x, training=False)
    x = L.GlobalAveragePooling2D()(x)
    x = L.Dropout(0.2)(x)
    model = keras.Model(inp, L.Dense(1)(x))
    model.compile(keras.optimizers.Adam(1e-4), keras.losses.BinaryCrossentropy(from_logits=True),
                  metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)])
    h.fit(model, ds)
