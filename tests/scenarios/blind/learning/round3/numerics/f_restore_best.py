"""Digits with an own loop that goes back to the best weights when validation gets no better."""
from common import *


def main(log):
    x, y = load("digits")
    x = (x / 16.0).astype("float32")
    y = y.astype("int32")
    order = np.random.permutation(len(x))
    train, val = order[:1400], order[1400:]

    model = keras.Sequential([L.Input((64,)), L.Dense(64, activation="relu"), L.Dense(10)])
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.SGD(0.05)

    @tf.function
    def train_step(xb, yb):
        with tf.GradientTape() as tape:
            loss = loss_fn(yb, model(xb, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    best = 0.0
    best_weights = model.get_weights()
    with log.loop(model, optimizer) as (epoch, step):
        for e in range(10):
            epoch()
            np.random.shuffle(train)
            for i in range(0, len(train), 32):
                loss = train_step(tf.constant(x[train[i:i + 32]]), tf.constant(y[train[i:i + 32]]))
                step(float(loss))
            val_loss = float(loss_fn(y[val], model(x[val])))
            if val_loss < best:
                best = val_loss
                best_weights = model.get_weights()
            else:
                model.set_weights(best_weights)


if __name__ == "__main__":
    run(main)
