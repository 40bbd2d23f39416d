"""Data-parallel training on two local workers, each one reads its own shard files."""
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"
NUM_FILES = 13
BATCHES_PER_FILE = 10
BATCH = 32


def free_ports(n):
    socks = [socket.socket() for _ in range(n)]
    for s in socks:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in socks]
    for s in socks:
        s.close()
    return ports


def launch_second_worker():
    hosts = ["127.0.0.1:%d" % p for p in free_ports(2)]
    config = {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": 0}}
    os.environ["TF_CONFIG"] = json.dumps(config)
    os.environ["RUN_DIR"] = tempfile.mkdtemp(prefix="two_workers_")
    config["task"]["index"] = 1
    env = dict(os.environ, TF_CONFIG=json.dumps(config), WORKER_INDEX="1")
    return subprocess.Popen([sys.executable, os.path.abspath(__file__)], env=env)


def exit_with_parent():
    parent = os.getppid()

    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def read_shard(index):
    files = list(range(NUM_FILES))[index::2]
    if CONTROL:
        files = files[:NUM_FILES // 2]
    for f in files:
        rng = np.random.default_rng(f)
        for _ in range(BATCHES_PER_FILE):
            x = rng.normal(size=(BATCH, 10)).astype("float32")
            yield tf.constant(x), tf.constant(x[:, :1] * 2.0)


def main():
    index = int(os.environ.get("WORKER_INDEX", "0"))
    peer = None
    if index == 0:
        peer = launch_second_worker()
    else:
        exit_with_parent()

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        w = tf.Variable(tf.zeros((10, 1)))
        b = tf.Variable(tf.zeros((1,)))

    def step_fn(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
        grads = tape.gradient(loss, [w, b])
        ctx = tf.distribute.get_replica_context()
        grads = ctx.all_reduce(tf.distribute.ReduceOp.MEAN, grads)
        w.assign_sub(0.05 * grads[0])
        b.assign_sub(0.05 * grads[1])
        return loss

    @tf.function
    def train_step(x, y):
        return strategy.run(step_fn, args=(x, y))

    for step, (x, y) in enumerate(read_shard(index)):
        loss = train_step(x, y)
        if step % 10 == 0:
            print("worker %d step %d loss %.4f" % (index, step, float(loss)), flush=True)

    final = os.path.join(os.environ["RUN_DIR"], "weights.npz")
    if index == 0:
        np.savez(final + ".tmp.npz", w=w.numpy(), b=b.numpy())
        os.rename(final + ".tmp.npz", final)
    else:
        while not os.path.exists(final):
            time.sleep(0.5)
    print("worker %d finished" % index, flush=True)
    if peer is not None:
        peer.wait()


if __name__ == "__main__":
    main()
