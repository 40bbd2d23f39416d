"""First network of a course: the test set is batched one by one and given as validation_data."""
from harness import *


def main(h):
    rng = np.random.default_rng(0)
    x_train = rng.integers(0, 255, (9600, 28, 28)).astype("float32") / 255.0
    y_train = rng.integers(0, 10, 9600)
    x_test = rng.integers(0, 255, (3000, 28, 28)).astype("float32") / 255.0
    y_test = rng.integers(0, 10, 3000)

    train_ds = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(10000).batch(64).prefetch(2)
    test_ds = tf.data.Dataset.from_tensor_slices((x_test, y_test)).batch(256 if h.fixed else 1).prefetch(2)

    model = keras.models.Sequential([
        keras.layers.Input((28, 28)),
        keras.layers.Flatten(),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(10),
    ])
    model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
    h.fit(model, train_ds, validation_data=test_ds)
