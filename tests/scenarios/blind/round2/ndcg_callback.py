"""Matrix factorisation with a ranking evaluation (NDCG@10, hit rate) after each epoch."""
from harness import *
import math

USERS, ITEMS, DIM, BATCH, STEPS = 1500, 3000, 32, 256, 150


class RankingEval(keras.callbacks.Callback):
    def __init__(self, h, seen, held_out):
        super().__init__()
        self.h, self.seen, self.held_out = h, seen, held_out

    def on_epoch_end(self, epoch, logs=None):
        with self.h.clock("callback"):
            u = np.asarray(self.model.get_layer("user").embeddings)
            v = np.asarray(self.model.get_layer("item").embeddings)
            scores = u @ v.T
            ndcg = hits = 0.0
            if self.h.fixed:
                for user, s in enumerate(self.seen):
                    scores[user, list(s)] = -np.inf
                target = scores[np.arange(USERS), self.held_out]
                rank = (scores > target[:, None]).sum(1)
                inside = rank < 10
                hits = inside.sum()
                ndcg = (inside / np.log2(rank + 2)).sum()
            else:
                for user in range(USERS):
                    ranked = sorted(
                        [(float(scores[user, i]), i) for i in range(ITEMS) if i not in self.seen[user]],
                        reverse=True,
                    )
                    top = [i for _, i in ranked[:10]]
                    if self.held_out[user] in top:
                        hits += 1
                        ndcg += 1 / math.log2(top.index(self.held_out[user]) + 2)
            print(f"epoch {epoch}: HR@10 {hits / USERS:.4f} NDCG@10 {ndcg / USERS:.4f}")


def main(h):
    rng = np.random.default_rng(11)
    n = BATCH * STEPS
    users, items = rng.integers(0, USERS, n), rng.zipf(1.3, n) % ITEMS
    r = rng.integers(1, 6, (n, 1)).astype("float32")
    seen = [set() for _ in range(USERS)]
    for a, b in zip(users.tolist(), items.tolist()):
        seen[a].add(b)
    held = np.array([next(i for i in rng.integers(0, ITEMS, 500).tolist() if i not in s) for s in seen])
    iu, ii = keras.Input((), dtype="int32"), keras.Input((), dtype="int32")
    eu = keras.layers.Embedding(USERS, DIM, name="user")(iu)
    ei = keras.layers.Embedding(ITEMS, DIM, name="item")(ii)
    model = keras.Model([iu, ii], keras.layers.Dot(1)([eu, ei]))
    model.compile("adam", "mse")
    ds = tf.data.Dataset.from_tensor_slices(((users.astype("int32"), items.astype("int32")), r))
    ds = ds.batch(BATCH).cache().prefetch(2)
    h.fit(model, ds, callbacks=[RankingEval(h, seen, held)])
