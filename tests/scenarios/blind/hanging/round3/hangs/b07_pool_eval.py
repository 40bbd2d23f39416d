"""Per-subject scores at the end of every epoch, computed in a process pool to use all cores."""
import multiprocessing as mp
import os
import signal

import keras
import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"
MODEL = None


def init_worker():
    signal.alarm(100)


def score_subject(job):
    subject, x, y = job
    p = MODEL.predict(x, batch_size=64, verbose=0)
    return subject, float(np.mean(np.argmax(p, axis=1) == y))


class SubjectScores(keras.callbacks.Callback):
    def __init__(self, subjects):
        super().__init__()
        self.subjects = subjects

    def on_epoch_end(self, epoch, logs=None):
        global MODEL
        MODEL = self.model
        if CONTROL:
            scores = [score_subject(job) for job in self.subjects]
        else:
            with mp.get_context("fork").Pool(2, initializer=init_worker) as pool:
                scores = pool.map(score_subject, self.subjects)
        worst = min(scores, key=lambda s: s[1])
        print("epoch %d worst subject %s: %.3f" % (epoch, *worst), flush=True)


def main():
    keras.utils.set_random_seed(2)
    x = np.random.rand(1200, 40).astype("float32")
    y = (x.sum(axis=1) > 20).astype("int32")
    subjects = [("s%02d" % i, x[i::6], y[i::6]) for i in range(6)]
    model = keras.Sequential([
        keras.Input((40,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(2, activation="softmax"),
    ])
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(x, y, epochs=3, batch_size=40, verbose=2, callbacks=[SubjectScores(subjects)])


if __name__ == "__main__":
    main()
