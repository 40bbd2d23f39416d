import multiprocessing as mp
import numpy as np


def load(indices, batches):  # in the worker processes: no TensorFlow here
    while True:
        rows = indices.get()
        r = np.random.default_rng(int(rows[0]))
        batches.put((r.normal(size=(len(rows), 16)).astype("float32"), (rows % 4).astype("int32")))


class Loader:
    def __init__(self, samples, epochs, size=64, workers=2):
        ctx = mp.get_context("spawn")
        self.indices, self.batches = ctx.Queue(), ctx.Queue(8)
        self.workers = [ctx.Process(target=load, args=(self.indices, self.batches), daemon=True)
                        for _ in range(workers)]
        [w.start() for w in self.workers]
        for epoch in range(epochs):  # all the work is handed out at once
            order = np.random.default_rng(epoch).permutation(samples)
            for i in range(0, samples, size):
                self.indices.put(order[i : i + size])

    def __iter__(self):
        while True:
            yield self.batches.get()

    def close(self):
        for w in self.workers:
            w.terminate()


if __name__ == "__main__":
    from common import *
    loader = Loader(samples=6400, epochs=100)
    train = tf.data.Dataset.from_generator(lambda: iter(loader), output_signature=SIG)
    stop = keras.callbacks.EarlyStopping("loss", patience=1, min_delta=10.0)
    model().fit(train, epochs=100, steps_per_epoch=100, verbose=2, callbacks=[stop])
    loader.close()
    print("done", flush=True)
