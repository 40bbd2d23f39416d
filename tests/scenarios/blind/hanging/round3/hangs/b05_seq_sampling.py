"""Sequence model with scheduled sampling, hand-written loop."""
import os
import time

import keras
import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"
T, VOCAB, UNITS, BATCH = 110, 30, 48, 16

embed = keras.layers.Embedding(VOCAB, UNITS)
cell_a = keras.layers.LSTMCell(UNITS)
cell_b = keras.layers.LSTMCell(UNITS)
head = keras.layers.Dense(VOCAB)
optimizer = keras.optimizers.Adam(2e-3)


def make_step(teacher_ratio):
    @tf.function
    def train_step(tokens):
        with tf.GradientTape() as tape:
            zeros = tf.zeros((BATCH, UNITS))
            state_a, state_b = [zeros, zeros], [zeros, zeros]
            current = tokens[:, 0]
            loss = 0.0
            for t in range(1, T):
                h, state_a = cell_a(embed(current), state_a)
                h, state_b = cell_b(h, state_b)
                logits = head(h)
                loss += tf.reduce_mean(
                    tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tokens[:, t], logits=logits))
                guess = tf.argmax(logits, axis=-1, output_type=tf.int32)
                use_teacher = tf.random.uniform((BATCH,)) < teacher_ratio
                current = tf.where(use_teacher, tokens[:, t], guess)
            loss /= T
        variables = (embed.trainable_variables + cell_a.trainable_variables
                     + cell_b.trainable_variables + head.trainable_variables)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return train_step


def batches(n):
    rng = np.random.default_rng(0)
    for _ in range(n):
        start = rng.integers(0, VOCAB, size=(BATCH, 1))
        yield tf.constant((start + np.arange(T)) % VOCAB, tf.int32)


def main():
    embed.build((None,))
    cell_a.build((None, UNITS))
    cell_b.build((None, UNITS))
    head.build((None, UNITS))
    optimizer.build(embed.trainable_variables + cell_a.trainable_variables
                    + cell_b.trainable_variables + head.trainable_variables)
    steps = 40
    for step, tokens in enumerate(batches(steps)):
        teacher_ratio = 1.0 - 0.5 * step / steps
        began = time.time()
        if step == 0 or not CONTROL:
            train_step = make_step(teacher_ratio)
        loss = train_step(tokens)
        print("step %d loss %.4f (%.1fs)" % (step, float(loss), time.time() - began), flush=True)


if __name__ == "__main__":
    main()
