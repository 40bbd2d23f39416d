from common import *
import signal
import subprocess
import sys
import tempfile
import threading
import time

preempted = threading.Event()
signal.signal(signal.SIGTERM, lambda number, frame: preempted.set())
# stands for the scheduler, which takes the node away
subprocess.Popen(["sh", "-c", f"sleep 20; kill -TERM {os.getpid()}"])


class SaveOnPreemption(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.02)  # so that an epoch takes a while
        if preempted.is_set():
            path = os.path.join(tempfile.mkdtemp(), "preempted.weights.h5")
            self.model.save_weights(path)
            print(f"preempted: saved {path}, stopping", flush=True)
            self.model.stop_training = True


model().fit(dataset(), epochs=500, verbose=2, callbacks=[SaveOnPreemption()])
sys.exit(0)  # the scheduler starts us again
