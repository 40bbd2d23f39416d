import multiprocessing as mp
import numpy as np

SHARDS = [9000, 6500]  # samples in the file of each replica
SYNC, PARAMS = 10, 676


def replica(rank, meet, shared):
    from common import arrays, model  # each replica has a TensorFlow of its own
    net = model()
    sizes = [w.size for w in net.get_weights()]
    table = np.frombuffer(shared, "float32").reshape(len(SHARDS), -1)
    x, y = arrays(SHARDS[rank])
    for step, i in enumerate(range(0, len(x), 64)):
        loss = net.train_on_batch(x[i : i + 64], y[i : i + 64])
        if step % SYNC == SYNC - 1:
            table[rank] = np.concatenate([w.ravel() for w in net.get_weights()])
            meet.wait()  # all have written
            mean = np.split(table.mean(axis=0), np.cumsum(sizes)[:-1])
            meet.wait()  # all have read
            net.set_weights([m.reshape(w.shape) for m, w in zip(mean, net.get_weights())])
            print(f"rank {rank} step {step + 1} loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    ctx = mp.get_context("spawn")
    shared = ctx.RawArray("f", len(SHARDS) * PARAMS)
    meet = ctx.Barrier(len(SHARDS))
    others = [ctx.Process(target=replica, args=(r, meet, shared)) for r in range(1, len(SHARDS))]
    for p in others:
        p.start()
    replica(0, meet, shared)
    for p in others:
        p.join()
