"""True or false? Sentences whose sense turns with each of three negations: a long plateau at ln 2, then it is found."""
from common import *

WORDS = ["not", "never", "hardly"] + ["word%d" % i for i in range(17)]


def sentences(n, rng):
    present = rng.random((n, len(WORDS))) < 0.5
    return present.astype("float32") * 2 - 1, (present[:, :3].sum(1) % 2).astype("float32")[:, None]


def main(log):
    rng = np.random.default_rng(2)
    model = keras.Sequential([
        keras.Input((len(WORDS),)),
        L.Dense(128, activation="relu"),
        L.Dense(1),
    ])
    optimizer = keras.optimizers.Adam(2e-3)
    bce = keras.losses.BinaryCrossentropy(from_logits=True)
    accuracy = keras.metrics.BinaryAccuracy(threshold=0.0)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = bce(y, logits)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        accuracy.update_state(y, logits)
        return loss

    with log.loop(model, optimizer) as (epoch, step):
        for _ in range(12):
            epoch()
            accuracy.reset_state()
            for _ in range(70):
                x, y = sentences(128, rng)
                step(float(train_step(tf.constant(x), tf.constant(y))))
            log.last_accuracy = float(accuracy.result())


if __name__ == "__main__":
    run(main)
