"""A small transformer reads a digit row by row; own loop, the schedule of "Attention is all you need"."""
from common import *


class Noam(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, d_model, warmup):
        self.d_model, self.warmup = float(d_model), float(warmup)

    def __call__(self, step):
        step = tf.cast(step, tf.float32) + 1.0
        return self.d_model**-0.5 * tf.minimum(step**-0.5, step * self.warmup**-1.5)

    def get_config(self):
        return {"d_model": self.d_model, "warmup": self.warmup}


def build(d):
    inp = keras.Input((8, 8))
    h = L.Dense(d)(inp)
    h = h + L.Embedding(8, d)(np.arange(8)[None])
    a = L.MultiHeadAttention(4, d // 4)(h, h)
    h = L.LayerNormalization()(h + a)
    f = L.Dense(d)(L.Dense(2 * d, activation="relu")(h))
    h = L.LayerNormalization()(h + f)
    return keras.Model(inp, L.Dense(10)(L.GlobalAveragePooling1D()(h)))


def main(log):
    x, y = load("digits")
    x = (x.reshape(-1, 8, 8) / 16).astype("float32")
    batch, epochs, warmup_epochs = 64, 10, 20
    model = build(64)
    warmup = warmup_epochs * len(x)
    optimizer = keras.optimizers.Adam(Noam(64, warmup), beta_1=0.9, beta_2=0.98, epsilon=1e-9)
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train(a, b):
        with tf.GradientTape() as tape:
            loss = loss_fn(b, model(a, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(2000, seed=3).batch(batch, drop_remainder=True)
    with log.loop(model, optimizer) as (epoch, step):
        for _ in range(epochs):
            epoch()
            for a, b in ds:
                step(float(train(a, b)))
    return {"accuracy_end": float((np.argmax(model.predict(x, verbose=0), 1) == y).mean())}


if __name__ == "__main__":
    run(main)
