"""Stock prediction, two LSTMs, fed by a plain Python generator without prefetch."""
from harness import *

LOOKBACK, BATCH, STEPS = 80, 64, 40


def main(h):
    rng = np.random.default_rng(9)
    prices = np.cumsum(rng.normal(0, 1, (5000, 6)), 0).astype("float32")
    prices = (prices - prices.mean(0)) / prices.std(0)

    def generator():
        r = np.random.default_rng(1)
        for _ in range(STEPS):
            rows = r.integers(LOOKBACK, len(prices) - 1, BATCH)
            samples = np.zeros((BATCH, LOOKBACK, 6), "float32")
            targets = np.zeros((BATCH, 1), "float32")
            for j, row in enumerate(rows):
                samples[j] = prices[row - LOOKBACK: row]
                targets[j] = prices[row, 3]
            yield samples, targets

    ds = tf.data.Dataset.from_generator(
        h.gen(generator),
        output_signature=(tf.TensorSpec((BATCH, LOOKBACK, 6)), tf.TensorSpec((BATCH, 1))))
    model = keras.Sequential()
    model.add(keras.Input((LOOKBACK, 6)))
    model.add(keras.layers.LSTM(128, return_sequences=True))
    model.add(keras.layers.Dropout(0.2))
    model.add(keras.layers.LSTM(128))
    model.add(keras.layers.Dropout(0.2))
    model.add(keras.layers.Dense(1))
    model.compile(optimizer="adam", loss="mean_squared_error")
    h.fit(model, ds)
