"""Programs that lose time in Python between the steps, and programs that lose none."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import keras
import tensorflow as tf

from tests.scenarios.instruments import Instruments
from tests.scenarios.workloads import batches, dense_model, from_logits, sleepy_batches


def every_batch(action: Callable[[int], object]) -> keras.callbacks.Callback:
    return keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: action(batch))


def h_sleep(it: Instruments) -> None:
    it.fit(dense_model(), batches(60), [every_batch(lambda _: time.sleep(0.03))])


def h_sleep_no_events(it: Instruments) -> None:
    """The same without any event file: only the trace can tell."""
    pause = every_batch(lambda _: time.sleep(0.03))
    it.fit(dense_model(), batches(60), [pause], tensorboard=None)


def h_checkpoint(it: Instruments) -> None:
    save = keras.callbacks.ModelCheckpoint(
        str(it.logdir.parent / "model.weights.h5"), save_weights_only=True, save_freq=2
    )
    it.fit(dense_model(layers=3, units=1024), batches(48, batch=16), [save])


def h_tf_checkpoint(it: Instruments) -> None:
    """tf.train.Checkpoint every few batches, which writes through TensorFlow ops."""
    model = dense_model(layers=3, units=1400)
    checkpoint = tf.train.Checkpoint(model=model)
    prefix = str(it.logdir.parent / "ckpt")

    def save(batch: int) -> None:
        if batch % 2 == 0:
            checkpoint.write(prefix)

    it.fit(model, batches(40, batch=16), [every_batch(save)])


def h_busy_python(it: Instruments) -> None:
    """Garbage collection over many objects after each batch."""
    litter = [[index] for index in range(400_000)]
    it.fit(dense_model(), batches(25), [every_batch(lambda _: gc.collect())])
    assert litter


def h_histograms(it: Instruments) -> None:
    """A histogram of every weight after every batch."""
    model = dense_model(layers=3, units=512)
    writer = tf.summary.create_file_writer(str(it.logdir / "train"))

    def write(batch: int) -> None:
        with writer.as_default(step=batch):
            for number, weight in enumerate(model.trainable_variables):
                tf.summary.histogram(f"weight/{number}", weight.numpy())

    it.fit(model, batches(20, batch=16), [every_batch(write)])


def ok_healthy(it: Instruments) -> None:
    it.fit(dense_model(layers=3, units=1024), batches(50, batch=1024))


def ok_conv(it: Instruments) -> None:
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.layers.Input((1024,)),
            keras.layers.Reshape((32, 32, 1)),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(10),
        ]
    )
    model.compile("sgd", from_logits())
    it.fit(model, batches(110, batch=64, features=1024), tensorboard="epoch")


def ok_mixed_precision(it: Instruments) -> None:
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    it.fit(dense_model(layers=3, units=768), batches(55, batch=512))
    it.knowledge.ready_from = 1


def v_compute(it: Instruments) -> None:
    """Validation inside the epoch takes half of it, computing."""
    model = dense_model(layers=3, units=1024)
    it.fit(model, batches(25, batch=1024), validation_data=batches(60, batch=1024))


def v_input(it: Instruments) -> None:
    """Validation inside the epoch waits for its data."""
    data = sleepy_batches([0.03] * 50)
    it.fit(dense_model(), batches(50), validation_data=data, validation_steps=50)
