"""Own buffered log handler; its writer thread dies of the first non-ASCII message."""
import logging
import queue
import tempfile
import threading
from common import *


class BufferedFileHandler(logging.Handler):
    def __init__(self, path):
        super().__init__()
        self.lines = queue.Queue(maxsize=64)
        self.out = open(path, "w", encoding="ascii")
        threading.Thread(target=self._writer, name="log-writer", daemon=True).start()

    def _writer(self):
        while True:
            self.out.write(self.lines.get() + "\n")

    def emit(self, record):
        self.lines.put(self.format(record))


log = logging.getLogger("train")
log.setLevel(logging.INFO)
log.propagate = False
log.addHandler(BufferedFileHandler(os.path.join(tempfile.mkdtemp(), "train.log")))


class Report(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 10:
            log.info("lr: 1000 µ per step")
        log.info("batch %d loss %.4f", batch, logs["loss"])


model().fit(dataset(300), epochs=3, verbose=2, callbacks=[Report()])
