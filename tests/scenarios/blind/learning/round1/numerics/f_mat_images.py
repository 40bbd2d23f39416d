"""Street numbers as they come from a .mat file (height, width, channel, number), labels 1..10, a small convnet."""
from common import *


def loadmat():
    """Stands for scipy.io.loadmat('train_8x8.mat')."""
    x, y = load("digits")
    order = np.random.default_rng(4).permutation(len(x))
    x, y = x[order].reshape(-1, 8, 8, 1), y[order].astype("uint8")
    y[y == 0] = 10
    return {"X": np.ascontiguousarray(x.transpose(1, 2, 3, 0)), "y": y[:, None]}


def main(log):
    mat = loadmat()
    images = mat["X"].reshape(-1, 8, 8, 1).astype("float32") / 16.0
    labels = mat["y"].flatten().astype("int32")
    labels[labels == 10] = 0

    cut = int(0.8 * len(images))
    train = tf.data.Dataset.from_tensor_slices((images[:cut], labels[:cut])).shuffle(cut).batch(32)
    test = tf.data.Dataset.from_tensor_slices((images[cut:], labels[cut:])).batch(128)

    model = keras.Sequential([
        keras.Input((8, 8, 1)),
        L.Conv2D(16, 3, padding="same", activation="relu"),
        L.MaxPooling2D(),
        L.Conv2D(32, 3, padding="same", activation="relu"),
        L.GlobalAveragePooling2D(),
        L.Dropout(0.3),
        L.Dense(32, activation="relu"),
        L.Dense(10),
    ])
    model.compile(optimizer=keras.optimizers.Adam(3e-3),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(train, validation_data=test, epochs=8, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
