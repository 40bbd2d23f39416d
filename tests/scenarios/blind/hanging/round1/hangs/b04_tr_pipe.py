"""Lines are cleaned by an external filter, one line in, one line out; the filter buffers."""
import subprocess
from common import *

x, y = arrays(6400)


class LineFilter:
    def __init__(self, *cmd):
        self.p = subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def clean(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        return self.p.stdout.readline().rstrip("\n")


def rows():
    f = LineFilter("tr", ";", ",")
    for i in range(len(x)):
        if i < 640:
            yield x[i], y[i]
            continue
        text = f.clean(";".join("%.4f" % v for v in x[i]))
        yield np.array(text.split(","), "float32"), y[i]


ds = tf.data.Dataset.from_generator(rows, output_signature=(tf.TensorSpec((16,), tf.float32), tf.TensorSpec((), tf.int32)))
model().fit(ds.batch(64).prefetch(1), epochs=3, verbose=2)
