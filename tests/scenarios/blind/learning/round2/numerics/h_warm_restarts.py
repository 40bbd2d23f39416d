"""Digits with mixup, label smoothing and dropout; warm-up, then cosine restarts of the rate."""
from common import *


def schedule(epoch, lr):
    if epoch < 2:
        return 1e-5
    return 1e-4 + 0.5 * (1e-2 - 1e-4) * (1 + np.cos(np.pi * ((epoch - 2) % 4) / 4))


def mixup(xb, yb):
    lam = tf.random.uniform([tf.shape(xb)[0], 1])
    idx = tf.random.shuffle(tf.range(tf.shape(xb)[0]))
    return lam * xb + (1 - lam) * tf.gather(xb, idx), lam * yb + (1 - lam) * tf.gather(yb, idx)


def main(log):
    x, y = load("digits")
    x = (x / 16.0).astype("float32")
    y = keras.utils.to_categorical(y, 10).astype("float32")
    train = tf.data.Dataset.from_tensor_slices((x[:1400], y[:1400])).shuffle(1400).batch(32).map(mixup).prefetch(2)
    val = tf.data.Dataset.from_tensor_slices((x[1400:], y[1400:])).batch(128)

    inputs = keras.Input((64,))
    h = L.Dense(64, activation="relu")(inputs)
    h = L.Dropout(0.5)(h)
    h = L.Dense(64, activation="relu")(h)
    h = L.Dropout(0.5)(h)
    model = keras.Model(inputs, L.Dense(10, activation="softmax")(h))
    model.compile(optimizer=keras.optimizers.Adam(1e-3),
                  loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.2), metrics=["accuracy"])
    model.fit(train, validation_data=val, epochs=12, verbose=0,
              callbacks=[keras.callbacks.LearningRateScheduler(schedule)] + log.callbacks())


if __name__ == "__main__":
    run(main)
