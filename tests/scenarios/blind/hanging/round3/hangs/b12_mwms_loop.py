"""Two workers on this machine with MultiWorkerMirroredStrategy and a custom loop."""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if "TF_CONFIG" not in os.environ:
    os.environ["RUN_DIR"] = tempfile.mkdtemp(prefix="mwms_")
    cluster = {"worker": ["127.0.0.1:%d" % free_port(), "127.0.0.1:%d" % free_port()]}
    second = dict(os.environ, TF_CONFIG=json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 1}}))
    subprocess.Popen([sys.executable, os.path.abspath(__file__)], env=second, stdout=subprocess.DEVNULL)
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}})
else:
    signal.alarm(110)

import keras
import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"
RANK = json.loads(os.environ["TF_CONFIG"])["task"]["index"]


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.w1 = tf.Variable(tf.random.stateless_normal((10, 32), (1, 2)) * 0.3)
        self.w2 = tf.Variable(tf.random.stateless_normal((32, 1), (3, 4)) * 0.3)

    def __call__(self, x):
        return tf.matmul(tf.nn.relu(tf.matmul(x, self.w1)), self.w2)


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        net = Net()

    def one_replica(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(net(x) - y))
        grads = tape.gradient(loss, [net.w1, net.w2])
        grads = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, grads)
        for v, g in zip([net.w1, net.w2], grads):
            v.assign_sub(0.01 * g)
        return loss

    @tf.function
    def train_step(x, y):
        return strategy.run(one_replica, args=(x, y))

    # every worker reads its own files; they do not all hold equally many batches
    batches = 160 if RANK == 0 or CONTROL else 150
    rng = np.random.default_rng(RANK)
    for step in range(batches):
        x = tf.constant(rng.random((16, 10)), tf.float32)
        y = tf.reduce_sum(x, axis=1, keepdims=True)
        loss = train_step(x, y)
        if RANK == 0 and step % 50 == 49:
            print("step", step, "loss", float(loss), flush=True)

    weights = os.path.join(os.environ["RUN_DIR"], "weights.npz")
    if RANK == 0:
        np.savez(weights, w1=net.w1.numpy(), w2=net.w2.numpy())
    else:
        while not os.path.exists(weights):  # the chief writes them
            time.sleep(0.5)
    print("worker", RANK, "done", flush=True)


if __name__ == "__main__":
    main()
