"""Silent but fine: idle helper threads, a held lock, an idle child; stops itself after 30 s."""
import queue
import subprocess
import threading
import time
from common import *

commands = queue.Queue()
gate = threading.Lock()


def control():
    with gate:
        while True:
            print("command:", commands.get())


threading.Thread(target=control, name="control", daemon=True).start()
threading.Thread(target=gate.acquire, name="second-control", daemon=True).start()
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)


class StopAfter(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.t0 = time.time()

    def on_epoch_end(self, epoch, logs=None):
        if time.time() - self.t0 > 30:
            self.model.stop_training = True


m = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(1024, activation="relu"),
                      keras.layers.Dense(1024, activation="relu"), keras.layers.Dense(4)])
m.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
m.fit(dataset(100, 256).cache().prefetch(2), epochs=100000, verbose=0, callbacks=[StopAfter()])
child.stdin.close()
child.wait()
