"""Sparse parity: the product of three hidden bits out of twenty, fresh samples at every step, own loop."""
from common import *

BITS, HIDDEN_BITS = 20, (2, 7, 13)


def main(log):
    model = keras.Sequential([keras.Input((BITS,)), L.Dense(128, activation="relu"), L.Dense(1)])
    opt = keras.optimizers.AdamW(8e-4, weight_decay=1e-2)
    opt.build(model.trainable_variables)
    bce = keras.losses.BinaryCrossentropy(from_logits=True)

    @tf.function
    def train():
        x = tf.where(tf.random.uniform((128, BITS)) < 0.5, -1.0, 1.0)
        y = 0.5 * (1 + tf.reduce_prod(tf.gather(x, HIDDEN_BITS, axis=1), axis=1, keepdims=True))
        with tf.GradientTape() as tape:
            loss = bce(y, model(x, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    with log.loop(model, opt) as (epoch, step):
        for _ in range(12):
            epoch()
            for _ in range(100):
                step(train())


if __name__ == "__main__":
    run(main)
