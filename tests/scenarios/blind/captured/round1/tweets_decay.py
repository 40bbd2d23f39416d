"""Disaster-tweets clone: TextVectorization + small GRU/average model, exponential decay of the rate.
'decay the learning rate by 0.9 each epoch' as in the reference solution."""
import json
import os
import random
import sys
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

try:
    from tb_stall_plugin import StallCallback
except ImportError:
    StallCallback = None

CONTROL = os.environ.get("CONTROL") == "1"
SEED = 3
random.seed(SEED)
keras.utils.set_random_seed(SEED)

CALM = "lunch coffee match movie friend sunny holiday music cat game beach funny birthday".split()
DIRE = "fire flood quake rescue evacuate injured storm collapse smoke warning victims crash".split()
FILL = [f"w{i}" for i in range(3000)]


def tweet(dire):
    words = random.choices(FILL, k=random.randint(8, 20))
    for _ in range(random.randint(1, 3)):
        words.insert(random.randrange(len(words)), random.choice(DIRE if dire else CALM))
    return " ".join(words)


labels = np.random.randint(0, 2, 12000)
texts = np.array([tweet(t) for t in labels])
BATCH, EPOCHS = 64, 2
n_train = 10000

vectorize = layers.TextVectorization(max_tokens=4000, output_sequence_length=24)
vectorize.adapt(texts[:n_train])
ids = vectorize(texts).numpy()
train = (tf.data.Dataset.from_tensor_slices((ids[:n_train], labels[:n_train]))
         .shuffle(n_train, seed=SEED).batch(BATCH).prefetch(tf.data.AUTOTUNE))
valid = tf.data.Dataset.from_tensor_slices((ids[n_train:], labels[n_train:])).batch(256)

steps_per_epoch = n_train // BATCH
schedule = keras.optimizers.schedules.ExponentialDecay(
    initial_learning_rate=1e-3,
    decay_steps=steps_per_epoch if CONTROL else 1,
    decay_rate=0.9,
    staircase=True)

model = keras.Sequential([
    keras.Input((24,), dtype="int32"),
    layers.Embedding(4000, 48),
    layers.Bidirectional(layers.GRU(24)),
    layers.Dropout(0.2),
    layers.Dense(16, activation="relu"),
    layers.Dense(1, activation="sigmoid"),
])
model.compile(optimizer=keras.optimizers.Adam(schedule), loss="binary_crossentropy", metrics=["accuracy"])


class Clock(keras.callbacks.Callback):
    epoch1 = None

    def on_epoch_begin(self, epoch, logs=None):
        self.t = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        if self.epoch1 is None:
            self.epoch1 = time.perf_counter() - self.t


clock = Clock()
callbacks = [clock]
if StallCallback is not None:
    callbacks.append(StallCallback(sys.argv[1]))
hist = model.fit(train, validation_data=valid, epochs=EPOCHS, callbacks=callbacks, verbose=2)
print("learning rate at the end:", float(model.optimizer.learning_rate))
print(json.dumps({"epoch1_s": round(clock.epoch1, 2), "blamed_s": 0.0,
                  "loss": [round(v, 3) for v in hist.history["loss"]],
                  "val_acc": [round(v, 3) for v in hist.history["val_accuracy"]]}))
