import os
import socket
import subprocess
import sys

rank = int(os.environ.get("RANK", 0))
if rank == 0:
    server = socket.create_server(("127.0.0.1", 0))
    env = dict(os.environ, RANK="1", MASTER_PORT=str(server.getsockname()[1]))
    subprocess.Popen([sys.executable, __file__], env=env)

from common import *

if rank == 0:
    peer, _ = server.accept()
else:
    peer = socket.create_connection(("127.0.0.1", int(os.environ["MASTER_PORT"])))
answers = peer.makefile("rb")

net = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(16, activation="relu"),
                        keras.layers.Dense(4096, activation="relu"),
                        keras.layers.Dense(4096, activation="relu"), keras.layers.Dense(4)])
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.SGD(0.01)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, net(x, training=True))
    grads = tape.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(grads, net.trainable_variables))
    return loss


def average(mine):
    peer.sendall(mine.tobytes())
    theirs = answers.read(mine.nbytes)
    return (mine + np.frombuffer(theirs, mine.dtype).reshape(mine.shape)) / 2


for step, (x, y) in enumerate(dataset(1000)):
    loss = train_step(x, y)
    if step % 10 == 9:
        for v in net.trainable_variables:
            v.assign(average(v.numpy()))
        print(f"rank {rank} step {step} loss {float(loss):.4f}", flush=True)
