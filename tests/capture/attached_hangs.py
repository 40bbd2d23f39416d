"""Programs that hang and know nothing of a capture. Each prints a line right before it hangs."""

from __future__ import annotations

# Lets any process of this user read this one, even if the kernel restricts it (as on Ubuntu).
PRELUDE = """\
import ctypes, sys
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)
"""
TRAINING = """\
import tensorflow as tf
def train(data, callbacks=()):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    print("hangs", flush=True)
    model.fit(data, verbose=0, callbacks=list(callbacks))  # fit
"""
ONES = "tf.data.Dataset.from_tensors((tf.ones((2, 4)), tf.ones((2, 1))))"

LOCK = """\
import threading
def save(lock):
    with lock:
        return lock.acquire()  # here
print("hangs", flush=True)
save(threading.Lock())
"""
QUEUE_IN_A_CALLBACK = f"""\
{TRAINING}
import queue
class Uploads(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        queue.Queue().get()  # here
train({ONES}, [Uploads()])
"""
GENERATOR_ON_A_SOCKET = f"""\
{TRAINING}
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
def rows():
    client.recv(1)  # here
    yield [1.0], [1.0]
shapes = tf.TensorSpec((1,)), tf.TensorSpec((1,))
train(tf.data.Dataset.from_generator(rows, output_signature=shapes).batch(1))
"""
SUBPROCESS = """\
import subprocess
print("hangs", flush=True)
subprocess.run(["sleep", "1000"])  # here
"""
NATIVE_INPUT = f"""\
{TRAINING}
lines = tf.data.TextLineDataset(sys.argv[1])
train(lines.map(lambda line: (tf.ones((2, 4)), tf.ones((2, 1)))))
"""
ENDLESS_LOOP = """\
def halved(low, high, width):
    while high - low != width: high = (low + high) / 2  # here
print("hangs", flush=True)
halved(0.0, 1.0, 0.3)
"""
AT_WORK = """\
print("hangs", flush=True)
while True:
    sorted(range(1000))
"""
RESTS = """\
import asyncio
print("hangs", flush=True)
asyncio.new_event_loop().run_forever()
"""
SLEEPS = """\
import time
print("hangs", flush=True)
time.sleep(1000)
"""
TRAINS = f"""\
{TRAINING}
train({ONES}.repeat())
"""


def line_of_hang(program: str) -> int:
    """Where the user's own code is; if TensorFlow itself waits, that is fit."""
    lines = (PRELUDE + program).splitlines()
    mark = "# here" if "# here" in program else "# fit"
    return next(n for n, line in enumerate(lines, 1) if line.endswith(mark))
