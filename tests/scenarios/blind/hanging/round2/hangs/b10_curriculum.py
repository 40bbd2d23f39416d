from common import *

# curriculum: samples come with a difficulty, every epoch asks for harder ones
x, y = arrays(20_000)
difficulty = np.random.default_rng(1).uniform(0, 1, len(x)).astype("float32")
level = tf.Variable(0.0, trainable=False)


def hard_enough(x, y, d):
    return d >= level


class Harder(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        level.assign_add(0.25)
        print(f"level is now {level.numpy():.2f}", flush=True)


train = (
    tf.data.Dataset.from_tensor_slices((x, y, difficulty))
    .shuffle(2000)
    .repeat()
    .filter(hard_enough)
    .map(lambda x, y, d: (x, y))
    .batch(64)
    .prefetch(tf.data.AUTOTUNE)
)
model().fit(train, epochs=10, steps_per_epoch=100, verbose=2, callbacks=[Harder()])
