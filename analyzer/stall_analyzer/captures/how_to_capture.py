"""How to capture a first epoch: shown by the help, the errors and the notes."""

# First what sees the most: memory, hangs, gradients and the bounds of epochs besides the profile.
CALLBACK_LINES = """\
from tb_stall_plugin import StallCallback
model.fit(dataset, callbacks=[StallCallback("logs/run1")])"""

# With TensorFlow alone. profile_batch=0, because only one profile can run at a time, and old Keras
# starts its own at batch 2. `with`, so that a run that fails still leaves its trace. Scalars of
# every batch (update_freq="batch") would double the time of a short step; the trace shows the time
# without them.
PROFILER_LINES = """\
board = keras.callbacks.TensorBoard("logs/run1", profile_batch=0)
with tf.profiler.experimental.Profile("logs/run1"):
    model.fit(dataset, epochs=1, callbacks=[board])"""

HOW_TO_GO_ON = "`stall-analyze --help` explains how to record one, and what a PATH may be."

HOW_TO_CAPTURE = f"""\
{CALLBACK_LINES}

# or, with TensorFlow alone
{PROFILER_LINES}"""
