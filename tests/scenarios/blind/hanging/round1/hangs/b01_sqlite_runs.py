"""Metrics go into a run database; the launcher registered the run and never committed."""
import sqlite3
import tempfile
from common import *

DB = os.path.join(tempfile.mkdtemp(), "runs.db")


def register_run(name):
    con = sqlite3.connect(DB, check_same_thread=False)
    con.execute("CREATE TABLE runs (name TEXT)")
    con.execute("CREATE TABLE metrics (epoch INT, loss REAL)")
    con.execute("INSERT INTO runs VALUES (?)", (name,))
    return con


class SqliteLogger(keras.callbacks.Callback):
    def __init__(self, path):
        super().__init__()
        self.db = sqlite3.connect(path, timeout=3600)

    def on_epoch_end(self, epoch, logs=None):
        row = (epoch, float(logs["loss"]))
        self.db.execute("INSERT INTO metrics VALUES (?, ?)", row)
        self.db.commit()


run = register_run("baseline")
m = model()
m.fit(dataset(50), epochs=5, verbose=2, callbacks=[SqliteLogger(DB)])
run.commit()
