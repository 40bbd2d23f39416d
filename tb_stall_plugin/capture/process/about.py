"""The start record: what is trained here, and on what."""

from __future__ import annotations

import json
import os
import platform
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stall_analyzer import __version__
from stall_analyzer.captures.capture_format import FORMAT
from stall_analyzer.captures.capture_records import (
    TRAINING_TASKS,
    Environment,
    Task,
    ThreadSettings,
)
from stall_analyzer.captures.machine import this_machine
from stall_analyzer.captures.record_json import from_json

FLAGS = (
    "TF_XLA_FLAGS", "XLA_FLAGS", "TF_CUDNN_USE_AUTOTUNE", "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_GPU_ALLOCATOR", "CUDA_CACHE_PATH", "CUDA_CACHE_DISABLE", "CUDA_VISIBLE_DEVICES",
)  # fmt: skip
CORE_FLAGS = re.compile(r"^(?:flags|Features)\s*:(.*)$", re.MULTILINE)
BFLOAT16_FLAGS = frozenset({"amx_bf16", "avx512_bf16", "bf16"})


def environment(hang_after_s: float | None, initialized: bool) -> Environment:
    """`initialized`: TensorFlow has set up its devices. Asking for them earlier would freeze
    settings that the user's script may still want to change."""
    tensorflow = sys.modules.get("tensorflow") if initialized else None
    cluster = _cluster()
    return Environment(
        format=FORMAT,
        tool=__version__,
        host=socket.gethostname(),
        pid=os.getpid(),
        parent=os.getppid(),
        machine=this_machine(),
        python=platform.python_version(),
        tensorflow=_version("tensorflow"),
        keras=_version("keras"),
        backend=_backend() or ("other" if initialized else None),
        devices=_devices(tensorflow),
        gpus=_gpus(tensorflow),
        built_for=_built_for(tensorflow),
        flags=_flags(),
        cores=_cores(),
        bfloat16=_bfloat16(),
        threads=_threads(tensorflow),
        task=from_json(Task, cluster.get("task")),
        cluster=cluster.get("cluster"),
        hang_after_s=hang_after_s,
    )


def is_one_of_several() -> bool:
    """Whether this process is one of several tasks in a cluster."""
    tasks = _cluster().get("cluster")
    if not isinstance(tasks, dict):
        return False
    return sum(len(addresses) for addresses in tasks.values() if isinstance(addresses, list)) > 1


def leads_its_cluster() -> bool:
    """Whether this process reports for its cluster: the chief or, without one, the first worker."""
    config = _cluster()
    tasks, task = config.get("cluster"), from_json(Task, config.get("task"))
    if not is_one_of_several() or not isinstance(tasks, dict) or task is None:
        return True
    leader = next((kind for kind in TRAINING_TASKS if tasks.get(kind)), "")
    return (task.type, task.index) == (leader, 0)


def _version(module: str) -> str | None:
    return getattr(sys.modules.get(module), "__version__", None)


def _backend() -> str | None:
    """None if it cannot be known yet. With TF_USE_LEGACY_KERAS, Keras 2 trains, whatever backend
    Keras 3 has."""
    keras: Any = getattr(sys.modules.get("keras"), "backend", None)
    if "tensorflow" in sys.modules and os.environ.get("TF_USE_LEGACY_KERAS") == "1":
        return "tensorflow"
    if hasattr(keras, "backend"):
        return str(keras.backend())
    return "tensorflow" if "tensorflow" in sys.modules else None


def _cores() -> int | None:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count()


def _cluster() -> dict[str, Any]:
    return cluster_in(os.environ)


def cluster_in(variables: Mapping[str, str]) -> dict[str, Any]:
    """What TF_CONFIG says."""
    try:
        config = json.loads(variables.get("TF_CONFIG", "{}"))
    except ValueError:  # TensorFlow will complain about it
        return {}
    return config if isinstance(config, dict) else {}


def _devices(tensorflow: Any) -> tuple[str, ...] | None:
    if tensorflow is None:
        return None
    names = []
    for device in tensorflow.config.list_physical_devices():
        short = device.name.removeprefix("/physical_device:")
        details = tensorflow.config.experimental.get_device_details(device)
        names.append(" ".join(filter(None, (short, details.get("device_name")))))
    return tuple(names)


def _gpus(tensorflow: Any) -> tuple[str, ...] | None:
    """The compute capability of each GPU that training may use."""
    if tensorflow is None:
        return None
    try:
        config = tensorflow.config
        details = [
            config.experimental.get_device_details(gpu) for gpu in config.get_visible_devices("GPU")
        ]
    except Exception:
        return None
    found = [detail.get("compute_capability") for detail in details]
    return tuple(".".join(map(str, one)) for one in found if one) or None


def _built_for(tensorflow: Any) -> tuple[str, ...] | None:
    """The architectures that this TensorFlow has kernels for: "sm_80", or "compute_90" for PTX."""
    try:
        built = tensorflow.sysconfig.get_build_info()["cuda_compute_capabilities"]
    except Exception:
        return None
    return tuple(map(str, built)) or None


def _flags() -> dict[str, str] | None:
    """The environment's flags for XLA and GPUs."""
    found = {name: os.environ[name] for name in FLAGS if name in os.environ}
    return found or None


def _bfloat16() -> bool | None:
    """As Linux reports it: among `flags` on x86, among `Features` on ARM."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    line = CORE_FLAGS.search(told)
    return None if line is None else not BFLOAT16_FLAGS.isdisjoint(line[1].split())


def _threads(tensorflow: Any) -> ThreadSettings | None:
    if tensorflow is None:
        return None
    threading = tensorflow.config.threading
    return ThreadSettings(
        threading.get_intra_op_parallelism_threads(), threading.get_inter_op_parallelism_threads()
    )
