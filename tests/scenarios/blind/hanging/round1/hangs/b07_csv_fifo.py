"""The metrics file is a named pipe for a live plot; nobody has started the plot."""
import tempfile
from common import *

out = tempfile.mkdtemp()
live = os.path.join(out, "metrics.csv")
os.mkfifo(live)

m = model(metrics=["accuracy"])
m.fit(dataset(100), epochs=1, verbose=2)

callbacks = [
    keras.callbacks.TerminateOnNaN(),
    keras.callbacks.CSVLogger(live),
]
history = m.fit(
    dataset(100),
    epochs=10,
    verbose=2,
    callbacks=callbacks,
)
print(history.history)
