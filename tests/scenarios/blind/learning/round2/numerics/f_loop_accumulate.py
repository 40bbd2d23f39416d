"""Diabetes regression in a loop of its own, gradients accumulated over four small batches."""
from common import *

ACCUM = 4


def main(log):
    x, y = load("diabetes")
    x = standardised(x).astype("float32")
    y = standardised(y.reshape(-1, 1)).astype("float32")
    data = tf.data.Dataset.from_tensor_slices((x[:384], y[:384])).shuffle(384).batch(8)

    model = keras.Sequential([keras.Input((10,)), L.Dense(32, activation="relu"), L.Dense(1)])
    optimizer = keras.optimizers.SGD(0.05)
    loss_fn = keras.losses.MeanSquaredError()
    accumulated = [tf.Variable(tf.zeros_like(v), trainable=False) for v in model.trainable_variables]

    @tf.function
    def micro_step(xb, yb):
        with tf.GradientTape() as tape:
            loss = loss_fn(yb, model(xb, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        for a, g in zip(accumulated, grads):
            a.assign_add(g / ACCUM)
        return loss

    with log.loop(model, optimizer) as (epoch, step):
        n = 0
        for _ in range(12):
            epoch()
            for xb, yb in data:
                loss = micro_step(xb, yb)
                n += 1
                if n % ACCUM == 0:
                    optimizer.apply_gradients(zip(accumulated, model.trainable_variables))
                step(float(loss))


if __name__ == "__main__":
    run(main)
