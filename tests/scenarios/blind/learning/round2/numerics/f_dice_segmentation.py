"""Segmentation of discs in noisy pictures with a tiny U-Net and a dice loss, fed by a Sequence."""
from common import *


def make_discs(n, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[:24, :24]
    images, masks = [], []
    for _ in range(n):
        cx, cy, r = rng.uniform(6, 18), rng.uniform(6, 18), rng.uniform(3, 6)
        mask = ((xx - cx) ** 2 + (yy - cy) ** 2 < r * r).astype("float32")
        images.append(mask * 0.6 + rng.normal(0.2, 0.15, mask.shape))
        masks.append(mask)
    return np.array(images, "float32")[..., None], np.array(masks, "float32")[..., None]


class DiscSequence(keras.utils.PyDataset):
    def __init__(self, x, y, batch_size=16):
        super().__init__()
        self.x, self.y, self.batch_size = x, y, batch_size

    def __len__(self):
        return len(self.x) // self.batch_size

    def __getitem__(self, i):
        s = slice(i * self.batch_size, (i + 1) * self.batch_size)
        return self.x[s], self.y[s]


def dice_loss(y_true, y_pred, smooth=1.0):
    y_true = tf.reshape(y_true, [-1])
    y_pred = tf.reshape(y_pred, [-1])
    intersection = tf.reduce_sum(y_true * y_pred)
    return (2.0 * intersection + smooth) / (tf.reduce_sum(y_true) + tf.reduce_sum(y_pred) + smooth)


def iou(y_true, y_pred):
    p = tf.cast(y_pred > 0.5, tf.float32)
    inter = tf.reduce_sum(y_true * p)
    return inter / (tf.reduce_sum(y_true) + tf.reduce_sum(p) - inter + 1e-7)


def build():
    inp = keras.Input((24, 24, 1))
    c1 = L.Conv2D(8, 3, padding="same", activation="relu")(inp)
    c2 = L.Conv2D(16, 3, padding="same", activation="relu")(L.MaxPooling2D()(c1))
    u1 = L.Concatenate()([L.UpSampling2D()(c2), c1])
    c3 = L.Conv2D(8, 3, padding="same", activation="relu")(u1)
    return keras.Model(inp, L.Conv2D(1, 1, activation="sigmoid")(c3))


def main(log):
    train = DiscSequence(*make_discs(320, 1))
    val = DiscSequence(*make_discs(64, 2))
    model = build()
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=dice_loss, metrics=[iou])
    model.fit(train, validation_data=val, epochs=8, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
