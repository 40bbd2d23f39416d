"""Siamese network on pairs of digits with euclidean distance and contrastive loss."""
from common import *


def make_pairs(x, y, n):
    a, b, same = [], [], []
    for k in range(n):
        i = np.random.randint(len(x))
        pool = np.where(y == y[i])[0] if k % 2 else np.where(y != y[i])[0]
        j = np.random.choice(pool)
        a.append(x[i])
        b.append(x[j])
        same.append(k % 2)
    return np.array(a), np.array(b), np.array(same, "float32")


def euclidean(pair):
    a, b = pair
    return keras.ops.sqrt(keras.ops.sum(keras.ops.square(a - b), axis=1, keepdims=True))


def contrastive_loss(y_true, d):
    y_true = keras.ops.reshape(y_true, (-1, 1))
    return keras.ops.mean(y_true * d + (1 - y_true) * keras.ops.maximum(1.0 - d, 0.0))


def pair_accuracy(y_true, d):
    return keras.ops.mean(keras.ops.cast(keras.ops.equal(keras.ops.reshape(y_true, (-1, 1)) > 0.5, d < 0.5), "float32"))


def main(log):
    x, y = load("digits")
    x = (x / 16.0).astype("float32")
    a, b, same = make_pairs(x, y, 3000)

    base = keras.Sequential([L.Input((64,)), L.Dense(64, activation="relu"), L.Dense(16)])
    in_a, in_b = L.Input((64,)), L.Input((64,))
    distance = L.Lambda(euclidean, output_shape=(1,))([base(in_a), base(in_b)])
    model = keras.Model([in_a, in_b], distance)
    model.compile(optimizer="adam", loss=contrastive_loss, metrics=[pair_accuracy])
    model.fit([a, b], same, batch_size=32, epochs=6, verbose=0, callbacks=log.callbacks())


if __name__ == "__main__":
    run(main)
