"""Retrieval: two towers, in-batch softmax, an optimizer written by hand, a train_on_batch loop.

Looks odd (Python generator in the loop, float of the loss at each step), but the matmuls are the time.
"""
from harness import *

FEATURES, BATCH, STEPS, EPOCHS = 96, 1024, 45, 2


class Lion(keras.optimizers.Optimizer):
    def __init__(self, learning_rate=1e-4, name="lion_by_hand", **kw):
        super().__init__(learning_rate=learning_rate, name=name, **kw)

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self.m = [self.add_variable_from_reference(v, "m") for v in variables]

    def update_step(self, grad, variable, learning_rate):
        m = self.m[self._get_variable_index(variable)]
        lr = keras.ops.cast(learning_rate, variable.dtype)
        self.assign_sub(variable, lr * keras.ops.sign(0.9 * m + 0.1 * grad))
        self.assign(m, 0.99 * m + 0.01 * grad)


def tower(name):
    return keras.Sequential(
        [
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(64),
            keras.layers.UnitNormalization(),
        ],
        name=name,
    )


def main(h):
    rng = np.random.default_rng(1)
    users = rng.normal(size=(20000, FEATURES)).astype("float32")
    items = (users @ rng.normal(size=(FEATURES, FEATURES)) / 10).astype("float32")

    def batches():
        order = rng.permutation(len(users))
        for i in range(STEPS):
            pick = np.take(order, range(i * BATCH, (i + 1) * BATCH), mode="wrap")
            yield [users[pick], items[pick]], np.arange(BATCH, dtype="int32")

    u, v = keras.Input((FEATURES,), name="user"), keras.Input((FEATURES,), name="item")
    a, b = tower("user_tower")(u), tower("item_tower")(v)
    scores = keras.ops.matmul(a, keras.ops.transpose(b)) * 10.0
    model = keras.Model([u, v], scores)
    opt = Lion(1e-4)
    model.compile(opt, keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    with h.loop(model, opt) as l:
        for epoch in range(EPOCHS):
            l.epoch()
            running = []
            for x, y in h.gen(batches)():
                loss = model.train_on_batch(x, y)
                running.append(float(loss))
                if len(running) % 20 == 0:
                    print(f"epoch {epoch} step {len(running)} loss {np.mean(running[-20:]):.3f}")
                l.step(loss=loss)
