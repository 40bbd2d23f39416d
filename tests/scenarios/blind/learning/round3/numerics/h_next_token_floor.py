"""Next token of a random chain with four equally likely successors: accuracy cannot pass 25 %."""
from common import *


def main(log):
    successors = np.array([np.random.choice(20, 4, replace=False) for _ in range(20)])
    seq = np.zeros((800, 17), "int32")
    seq[:, 0] = np.random.randint(0, 20, 800)
    for t in range(16):
        seq[:, t + 1] = successors[seq[:, t], np.random.randint(0, 4, 800)]

    model = keras.Sequential([
        L.Input((16,)),
        L.Embedding(20, 16),
        L.GRU(24, return_sequences=True),
        L.Dense(20),
    ])
    model.compile(optimizer=keras.optimizers.Adam(1e-2),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(seq[:, :-1], seq[:, 1:], batch_size=32, epochs=10, validation_split=0.2, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
