"""The buckets and the causes inside them: the terms that every report uses.

A cause is `bucket.what`. The ledger stores causes as small integers; `CAUSES` is the table.
"""

from __future__ import annotations

from functools import cache
from typing import cast, get_args

import numpy as np

from stall_analyzer.model.kinds import Bucket
from stall_analyzer.model.units import Bools, Int64s

BUCKETS: tuple[Bucket, ...] = get_args(Bucket)

# cause -> whether it occurs only in the first epoch. (attribute/one_time.py may decide otherwise
# for a segment.) Ending an iterator is slow by chance, see ST014.
_ONE_TIME = {
    "input.wait": False,
    "input.contention": False,
    "input.first_element": False,
    "input.shuffle_fill": False,
    "input.cache_fill": True,
    "input.iterator_create": False,
    "input.iterator_teardown": True,
    "input.host_to_device_copy": False,
    "compile.tracing": True,
    "compile.retracing": True,
    "compile.instantiate": True,
    "compile.xla": True,
    "compile.variable_init": True,
    "compile.kernels": True,
    "memory.allocator_wait": False,
    "memory.out_of_memory": False,
    "memory.transfer": False,
    "numerics.nonfinite": False,
    "numerics.skipped_update": False,
    "numerics.check_ops": False,
    "compute.step": False,
    "compute.eager_op": False,
    "compute.runtime": False,
    "compute.warm_up": True,
    "compute.device": False,
    "communication.collective": False,
    "communication.remote": False,
    "host.python": False,
    "host.dispatch": False,
    "host.eager": False,
    "host.callback": False,
    "host.py_func": False,
    "host.summary": False,
    "host.checkpoint": False,
    "profiler.start": True,
    "profiler.stop": True,
    "profiler.tracing": True,
    "profiler.logging": False,
    "profiler.capture": True,
    "unknown.not_traced": False,
    "unknown.no_evidence": False,
}

CAUSES: tuple[str, ...] = tuple(_ONE_TIME)
ONE_TIME: Bools = np.array(list(_ONE_TIME.values()), dtype=np.bool_)
_CODES = {cause: code for code, cause in enumerate(CAUSES)}


def code(cause: str) -> int:
    return _CODES[cause]


def codes(*causes: str) -> Int64s:
    return np.array([_CODES[cause] for cause in causes], dtype=np.int64)


@cache
def bucket_of(cause: str) -> Bucket:
    return cast(Bucket, cause.partition(".")[0])


@cache
def codes_of_bucket(bucket: str) -> Int64s:
    found = codes(*(cause for cause in CAUSES if bucket_of(cause) == bucket))
    found.setflags(write=False)  # shared by all callers
    return found
