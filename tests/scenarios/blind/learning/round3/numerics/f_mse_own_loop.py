"""Diabetes regression with a hand-written mean squared error in an own loop."""
from common import *


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.h1 = L.Dense(32, activation="relu")
        self.h2 = L.Dense(16, activation="relu")
        self.out = L.Dense(1)

    def call(self, x):
        return self.out(self.h2(self.h1(x)))


def main(log):
    x, y = load("diabetes")
    x = standardised(x).astype("float32")
    y = ((y - y.mean()) / y.std()).astype("float32")
    ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(500).batch(32)

    model = Net()
    model.build((None, 10))
    optimizer = keras.optimizers.Adam(3e-3)

    @tf.function
    def train_step(xb, yb):
        with tf.GradientTape() as tape:
            pred = model(xb)
            loss = tf.reduce_mean(tf.square(yb - pred))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    with log.loop(model, optimizer) as (epoch, step):
        for e in range(12):
            epoch()
            for xb, yb in ds:
                step(float(train_step(xb, yb)))


if __name__ == "__main__":
    run(main)
