"""Grey images (bytes) through tf.data into a small convolutional net."""
from common import *


def prepare(image, label):
    image = image // 255
    return tf.cast(image, tf.float32), label


def main(log):
    x, y = load("digits")
    images = (x * 15).astype("uint8").reshape(-1, 8, 8, 1)  # 0..240
    ds = tf.data.Dataset.from_tensor_slices((images, y.astype("int32")))
    ds = ds.shuffle(2000).map(prepare).batch(32).prefetch(2)

    inp = L.Input((8, 8, 1))
    h = L.Conv2D(16, 3, activation="relu")(inp)
    h = L.MaxPooling2D()(h)
    h = L.Flatten()(h)
    h = L.Dense(32, activation="relu")(h)
    model = keras.Model(inp, L.Dense(10, activation="softmax")(h))
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(ds, epochs=8, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
