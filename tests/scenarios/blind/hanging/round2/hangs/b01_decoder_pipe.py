from common import *
import subprocess
import sys

DECODER = r"""
import sys
for line in sys.stdin:
    i = int(line)
    sys.stderr.write(f"[mp4 @ 0x55d1c0] record {i}: non monotonically increasing dts\n")
    sys.stderr.flush()
    print(*[(i * j) % 7 / 7 for j in range(16)], flush=True)
"""


class Decoder:
    """One external decoder for the whole run: a request per line, an answer per line."""

    def __init__(self):
        self.proc = subprocess.Popen(
            [sys.executable, "-c", DECODER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )

    def decode(self, i):
        self.proc.stdin.write(f"{int(i)}\n")
        self.proc.stdin.flush()
        return np.array(self.proc.stdout.readline().split(), "float32")


decoder = Decoder()


def load(i):
    x = tf.py_function(decoder.decode, [i], tf.float32)
    return tf.ensure_shape(x, (16,)), tf.cast(i % 4, tf.int32)


ds = tf.data.Dataset.range(200_000).map(load).batch(64).prefetch(2)
model().fit(ds, epochs=3, verbose=2)
