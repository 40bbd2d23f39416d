"""The programs behind sample_logs/: a few small steps each, so that their logs stay small."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import tensorflow as tf

from tests.scenarios.communication_stalls import two_recorded_workers
from tests.scenarios.compile_stalls import SlowToTrace
from tests.scenarios.instruments import Instruments
from tests.scenarios.memory_stalls import fit_with_holder
from tests.scenarios.mixes import pause
from tests.scenarios.numerics_stalls import fit_with_one_nan
from tests.scenarios.workloads import batches, dense_model, rows, sleeping, sleepy_batches


def input_py_function(it: Instruments) -> None:
    data = rows(20 * 64).batch(64).map(sleeping(0.08, tf.py_function))
    it.fit(dense_model(layers=1), data)


def compile_tracing(it: Instruments) -> None:
    model = dense_model(layers=1, units=512, extra=[SlowToTrace(1.0)])
    it.fit(model, batches(12, batch=256), epochs=2)


def memory_allocator_wait(it: Instruments) -> None:
    fit_with_holder(it, {3: 1.5}, batches(6))


def numerics_nan(it: Instruments) -> None:
    model = dense_model(layers=1, units=4096, activation="tanh")
    fit_with_one_nan(it, model, 16, 4)


def healthy(it: Instruments) -> None:
    it.fit(dense_model(layers=2, units=2048), batches(16, batch=1024))


def event_files_only(it: Instruments) -> None:
    """No profile was captured: only the scalars of three epochs."""
    model = dense_model(layers=1, extra=[SlowToTrace(1.0)])
    it.fit(model, batches(10), profiled=False, epochs=3)


def mixed_host_and_input(it: Instruments) -> None:
    it.fit(dense_model(layers=1), sleepy_batches(0.09), [pause(0.05)], steps_per_epoch=16)


def communication_straggler(it: Instruments) -> None:
    """Two workers, of which the second one pauses before each step. Each wrote a trace."""
    steps = 16
    peer_logs = two_recorded_workers(it, dict.fromkeys(range(1, steps), 0.08), steps)
    one_session(it.logdir, peer_logs)


def one_session(logdir: Path, peer_logs: Path) -> None:
    """Both workers run on one machine under one name; in a cluster each writes its own file."""
    ((own,), (theirs,)) = (
        list(logs.glob("plugins/profile/*/*.xplane.pb")) for logs in (logdir, peer_logs)
    )
    shutil.move(theirs, own.with_name(f"{socket.gethostname()}-worker-1.xplane.pb"))
    own.rename(own.with_name(f"{socket.gethostname()}-worker-0.xplane.pb"))
