"""Forecaster with a gated (WaveNet) layer; tf.debugging.enable_check_numerics() was left in after a NaN hunt."""
from harness import *

L, C = 512, 16


def gated(x, rate):
    a = keras.layers.Conv1D(C, 2, padding="causal", dilation_rate=rate)(x)
    f, g = keras.layers.Dense(C)(a), keras.layers.Dense(C)(a)
    z = keras.layers.Multiply()([keras.layers.Activation("tanh")(f),
                                 keras.layers.Activation("sigmoid")(g)])
    z = keras.layers.LayerNormalization()(keras.layers.Dense(C)(z))
    return keras.layers.Add()([x, z])


def main(h):
    if not h.fixed:
        tf.debugging.enable_check_numerics()
    rng = np.random.default_rng(12)
    n = 128 * 70
    s = np.cumsum(rng.normal(0, 0.1, (n, L + 1, 1)), 1).astype("float32")
    x, y = s[:, :-1], s[:, 1:]

    inp = keras.Input((L, 1))
    z = gated(keras.layers.Dense(C)(inp), 2)
    z = keras.layers.Activation("gelu")(z)
    model = keras.Model(inp, keras.layers.Dense(1)(z))
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="huber")
    h.fit(model, x, y, batch_size=128)
