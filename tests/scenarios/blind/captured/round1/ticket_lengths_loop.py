"""Support-ticket triage: word embeddings + TextCNN, own loop.
Batches are padded to the longest ticket of the batch, to save compute."""
import json
import os
import sys
import time

import numpy as np
import tensorflow as tf

try:
    from watched import watch
except ImportError:
    def watch(it, logdir):
        return it

logdir = sys.argv[1]
CONTROL = os.environ.get("CONTROL") == "1"
VOCAB, CLASSES, BATCH = 5000, 6, 32
rng = np.random.default_rng(11)


def fake_tickets(n=3200):
    labels = rng.integers(0, CLASSES, n)
    lengths = np.clip(rng.lognormal(3.6, 0.6, n), 6, 220).astype(int)
    tickets = []
    for lab, ln in zip(labels, lengths):
        words = rng.integers(CLASSES * 50 + 1, VOCAB, ln)
        hint = rng.random(ln) < 0.2
        words[hint] = 1 + lab * 50 + rng.integers(0, 50, hint.sum())
        tickets.append(words)
    return tickets, labels.astype("int64")


def batches(tickets, labels):
    order = rng.permutation(len(tickets))
    for i in range(0, len(order) - BATCH + 1, BATCH):
        idx = order[i:i + BATCH]
        longest = -(-max(len(tickets[j]) for j in idx) // 8) * 8      # multiples of 8, for the vector units
        if CONTROL:
            longest = 224
        x = np.zeros((BATCH, longest), "int32")
        for row, j in enumerate(idx):
            x[row, :len(tickets[j])] = tickets[j]
        yield x, labels[idx]


class Triage(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.emb = tf.keras.layers.Embedding(VOCAB, 32)
        self.convs = [tf.keras.layers.Conv1D(24, k, padding="same", activation="relu") for k in (2, 3, 4)]
        self.drop = tf.keras.layers.Dropout(0.2)
        self.out = tf.keras.layers.Dense(CLASSES)

    def call(self, x, training=False):
        mask = tf.cast(x > 0, tf.float32)[..., None]
        h = self.emb(x) * mask
        h = tf.concat([tf.reduce_max(c(h), axis=1) for c in self.convs], axis=-1)
        return self.out(self.drop(h, training=training))


model = Triage()
model(np.zeros((1, 8), "int32"))
opt = tf.keras.optimizers.Adam(2e-3)
opt.build(model.trainable_variables)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
acc = tf.keras.metrics.SparseCategoricalAccuracy()


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = loss_fn(y, logits)
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
    acc.update_state(y, logits)
    return loss


tickets, labels = fake_tickets()
epoch1 = retrace_s = 0.0
traces = 0
for epoch in range(2):
    t_epoch = time.perf_counter()
    for step, (x, y) in enumerate(watch(batches(tickets, labels), logdir)):
        t = time.perf_counter()
        loss = train_step(tf.constant(x), tf.constant(y))
        n = train_step.experimental_get_tracing_count()
        if epoch == 0 and n > traces:
            retrace_s += time.perf_counter() - t
        traces = n
        if step % 25 == 0:
            print(f"epoch {epoch} step {step} loss {float(loss):.3f} acc {float(acc.result()):.3f}")
    if epoch == 0:
        epoch1 = time.perf_counter() - t_epoch
    acc.reset_state()
print(json.dumps({"epoch1_s": round(epoch1, 2), "blamed_s": round(retrace_s, 2), "traces": traces}))
