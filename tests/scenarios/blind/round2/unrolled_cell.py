"""Demand forecasting with a recurrent cell from a paper; the layer walks through time in Python."""
from harness import *

LEN, FEAT, UNITS, BATCH, STEPS = 30, 5, 24, 32, 40


class MinimalGatedCell(keras.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.units = self.state_size = self.output_size = units

    def build(self, shape):
        d = shape[-1]
        self.wf = self.add_weight(shape=(d, self.units), initializer="glorot_uniform")
        self.uf = self.add_weight(shape=(self.units, self.units), initializer="orthogonal")
        self.bf = self.add_weight(shape=(self.units,), initializer="ones")
        self.wh = self.add_weight(shape=(d, self.units), initializer="glorot_uniform")
        self.uh = self.add_weight(shape=(self.units, self.units), initializer="orthogonal")
        self.bh = self.add_weight(shape=(self.units,), initializer="zeros")

    def call(self, x, states):
        s = states[0]
        f = tf.sigmoid(x @ self.wf + s @ self.uf + self.bf)
        c = tf.tanh(x @ self.wh + (f * s) @ self.uh + self.bh)
        s = (1 - f) * s + f * c
        return s, [s]


class PythonLoop(keras.layers.Layer):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def build(self, shape):
        self.cell.build((shape[0], shape[-1]))

    def compute_output_shape(self, shape):
        return (shape[0], shape[1], self.cell.units)

    def call(self, x):
        s, outs = [tf.zeros((tf.shape(x)[0], self.cell.units))], []
        for t in range(LEN):
            o, s = self.cell(x[:, t, :], s)
            outs.append(o)
        return tf.stack(outs, 1)


class Forecaster(keras.Model):
    def __init__(self, fixed):
        super().__init__()
        if fixed:
            self.r = [keras.layers.RNN(MinimalGatedCell(UNITS), return_sequences=True)]
        else:
            self.r = [PythonLoop(MinimalGatedCell(UNITS))]
        self.head = keras.layers.Dense(7)

    def call(self, x):
        for r in self.r:
            x = r(x)
        return self.head(x[:, -1])


def main(h):
    rng = np.random.default_rng(9)
    x = rng.normal(size=(BATCH * STEPS, LEN, FEAT)).astype("float32")
    y = x[:, -7:, 0].cumsum(1)
    model = Forecaster(h.fixed)
    model.compile("adam", "mse")
    h.fit(model, x, y, batch_size=BATCH)
