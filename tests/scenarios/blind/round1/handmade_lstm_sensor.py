"""LSTM from scratch (research code) on windows of a machine's sensors."""
from harness import *

TIME, FEATURES, UNITS, BATCH, STEPS = 30, 6, 24, 32, 40


class HandCell(keras.layers.Layer):
    def __init__(self, units, **kw):
        super().__init__(**kw)
        self.units = units
        self.state_size = [units, units]
        self.output_size = units

    def build(self, shape):
        self.wx = self.add_weight(shape=(shape[-1], 4 * self.units), initializer="glorot_uniform")
        self.wh = self.add_weight(shape=(self.units, 4 * self.units), initializer="orthogonal")
        self.b = self.add_weight(shape=(4 * self.units,), initializer="zeros")

    def call(self, x, states):
        hid, mem = states
        gates = tf.matmul(x, self.wx) + tf.matmul(hid, self.wh) + self.b
        i, f, g, o = tf.split(gates, 4, axis=-1)
        mem = tf.sigmoid(f + 1.0) * mem + tf.sigmoid(i) * tf.tanh(g)
        hid = tf.sigmoid(o) * tf.tanh(mem)
        return hid, [hid, mem]


class HandLSTM(keras.layers.Layer):
    def __init__(self, units, **kw):
        super().__init__(**kw)
        self.cell = HandCell(units)

    def build(self, shape):
        self.cell.build((shape[0], shape[-1]))

    def call(self, x):
        zeros = tf.zeros((tf.shape(x)[0], self.cell.units))
        states, outputs = [zeros, zeros], []
        for t in range(x.shape[1]):
            y, states = self.cell(x[:, t], states)
            outputs.append(y)
        return tf.stack(outputs, axis=1)


class Detector(keras.Model):
    def __init__(self, fixed):
        super().__init__()
        if fixed:
            self.one = keras.layers.RNN(HandCell(UNITS), return_sequences=True)
            self.two = keras.layers.RNN(HandCell(UNITS), return_sequences=True)
        else:
            self.one = HandLSTM(UNITS)
            self.two = HandLSTM(UNITS)
        self.head = keras.layers.Dense(1)

    def call(self, x):
        y = self.two(self.one(x))
        return self.head(tf.reduce_mean(y, axis=1))


def main(h):
    rng = np.random.default_rng(7)
    n = BATCH * STEPS
    x = rng.normal(size=(n, TIME, FEATURES)).cumsum(axis=1).astype("float32") / 10
    y = (np.abs(x[:, -1, 0]) > 0.7).astype("float32")[:, None]
    model = Detector(h.fixed)
    model.compile(
        keras.optimizers.RMSprop(1e-3),
        keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)],
    )
    h.fit(model, x, y, batch_size=BATCH)
