"""Programs with several stalls at once."""

from __future__ import annotations

import time

import keras
import tensorflow as tf

from tests.scenarios.compile_stalls import SlowToTrace
from tests.scenarios.host_stalls import every_batch
from tests.scenarios.instruments import Instruments
from tests.scenarios.memory_stalls import fit_with_holder
from tests.scenarios.numerics_stalls import fit_with_one_nan
from tests.scenarios.workloads import (
    batches,
    dense_model,
    rows,
    sleeping,
    sleepy_batches,
    training_step,
)


def pause(seconds: float) -> keras.callbacks.Callback:
    return every_batch(lambda _: time.sleep(seconds))


def mix_generator_trace_callback(it: Instruments) -> None:
    model = dense_model(extra=[SlowToTrace(0.5)])
    it.fit(model, sleepy_batches(0.045), [pause(0.015)], steps_per_epoch=60)


def mix_map_checkpoint_validation(it: Instruments) -> None:
    save = keras.callbacks.ModelCheckpoint(
        str(it.logdir.parent / "model.keras"), save_freq=20, save_weights_only=False
    )
    data = rows(50 * 64).batch(64).map(sleeping(0.02))
    it.fit(dense_model(units=512), data, [save], validation_data=batches(60, batch=512))


def mix_xla_bursts_callback(it: Instruments) -> None:
    it.knowledge.xla_calls = {0}
    it.how["compile"] = "first call less its wait and less the usual call"
    data = sleepy_batches([0.15 if step % 12 == 5 else 0.0 for step in range(50)], fixed=True)
    model = dense_model(layers=4, units=64, jit_compile=True)
    it.fit(model, data, [pause(0.01)], steps_per_epoch=50)


def mix_first_element_heavy_steps(it: Instruments) -> None:
    data = sleepy_batches(0.0, batch=1024, first_s=2.6).prefetch(2)
    it.fit(dense_model(layers=3, units=768), data, [pause(0.01)], steps_per_epoch=30)


def mix_many_steps_per_call(it: Instruments) -> None:
    model = dense_model(units=512, steps_per_execution=5, extra=[SlowToTrace(0.3)])
    it.fit(model, sleepy_batches(0.03, batch=256), [pause(0.1)], steps_per_epoch=60)


def mix_nan_slow_input(it: Instruments) -> None:
    model = dense_model(layers=3, units=768, activation="tanh")
    fit_with_one_nan(it, model, 40, 5, [pause(0.012)])


def mix_memory_input_callback(it: Instruments) -> None:
    data = sleepy_batches(0.04)
    fit_with_holder(it, {4: 0.8, 9: 1.0}, data, callbacks=[pause(0.02)], steps_per_epoch=14)


def mix_loop(it: Instruments) -> None:
    """A custom loop that retraces, waits and sleeps."""
    model = dense_model(layers=4, units=256)
    step = it.timed(tf.function(it.stamped_step(training_step(model))))
    data = sleepy_batches(0.075).take(40)
    with it.profile(), it.epoch():
        for number, (x, y) in enumerate(data):
            with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                size = 64 - 8 * (number // 10)
                step(x[:size], y[:size])
            time.sleep(0.01)
