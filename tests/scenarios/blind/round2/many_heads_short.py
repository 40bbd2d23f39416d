"""Healthy, looks odd: many inputs, many losses, small table, so the first epoch is mostly graph building."""
from harness import *

CATS, NUMS, HEADS, BATCH, STEPS = 8, 10, 3, 64, 60


def main(h):
    rng = np.random.default_rng(6)
    n = BATCH * STEPS
    x = {f"cat_{i}": rng.integers(0, 20 + i, n).astype("int32") for i in range(CATS)}
    x["nums"] = rng.normal(size=(n, NUMS)).astype("float32")
    y = {f"y_{i}": (rng.random((n, 1)) < 0.1 * (i + 1)).astype("float32") for i in range(HEADS)}
    ins, embs = {}, []
    for i in range(CATS):
        ins[f"cat_{i}"] = a = keras.Input((), dtype="int32", name=f"cat_{i}")
        embs.append(keras.layers.Embedding(20 + i, 4, name=f"emb_{i}")(a))
    ins["nums"] = a = keras.Input((NUMS,), name="nums")
    z = keras.layers.Concatenate()([*embs, keras.layers.BatchNormalization()(a)])
    for _ in range(2):
        z = keras.layers.Dense(64, activation="relu")(z)
        z = keras.layers.Dropout(0.1)(z)
    outs = {}
    for i in range(HEADS):
        t = keras.layers.Dense(16, activation="relu")(z)
        outs[f"y_{i}"] = keras.layers.Dense(1, activation="sigmoid", name=f"y_{i}")(t)
    model = keras.Model(ins, outs)
    model.compile(
        "adam",
        loss={k: "binary_crossentropy" for k in outs},
        loss_weights={k: 1.0 / (i + 1) for i, k in enumerate(outs)},
        metrics={k: ["accuracy"] for k in outs},
    )
    batches = [
        ({k: v[s : s + BATCH] for k, v in x.items()}, {k: v[s : s + BATCH] for k, v in y.items()})
        for s in range(0, n, BATCH)
    ]
    stacked = tf.nest.map_structure(lambda *a: np.stack(a), *batches)
    ds = tf.data.Dataset.from_tensor_slices(stacked).prefetch(tf.data.AUTOTUNE)
    h.fit(model, ds, epochs=3)
