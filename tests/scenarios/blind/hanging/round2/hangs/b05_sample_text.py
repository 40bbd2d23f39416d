from common import *

CHARS = "\n abcdefghijklmnopqrstuvwxyz."
WINDOW = 12
text = " ".join(l.strip() for l in ["the quick brown fox jumps over the lazy dog."] * 200)
ids = np.array([CHARS.index(c) for c in text])
x = np.stack([ids[i : i + WINDOW] for i in range(len(ids) - WINDOW)])
y = ids[WINDOW:]

net = keras.Sequential([
    keras.layers.Input((WINDOW,)),
    keras.layers.Embedding(len(CHARS), 16),
    keras.layers.Flatten(),
    keras.layers.Dense(64, activation="relu"),
    keras.layers.Dense(len(CHARS)),
])
net.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))


class ShowSample(keras.callbacks.Callback):
    """Writes a line with the model after each epoch."""

    def on_epoch_end(self, epoch, logs=None):
        line = list(ids[:WINDOW])
        while CHARS[line[-1]] != "\n":
            logits = self.model.predict(np.array([line[-WINDOW:]]), verbose=0)
            line.append(int(logits[0].argmax()))
        print(epoch, "".join(CHARS[i] for i in line))


net.fit(x, y, batch_size=64, epochs=10, verbose=2, callbacks=[ShowSample()])
