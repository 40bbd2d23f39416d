"""The three lines that capture a first epoch: shown by the help, the errors and the notes."""

# profile_batch=0: only one profile can run at a time, and old Keras starts its own at batch 2.
# `with`: a training that fails still leaves its trace.
THREE_LINES = """\
board = keras.callbacks.TensorBoard("logs/run1", update_freq="batch", profile_batch=0)
with tf.profiler.experimental.Profile("logs/run1"):
    model.fit(dataset, epochs=1, callbacks=[board])"""
