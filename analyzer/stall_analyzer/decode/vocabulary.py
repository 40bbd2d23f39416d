"""What TensorFlow's event names mean, in one place.

The decoder asks `keep_from_ps` and `fold_bits` once per distinct name, so a trace of fifty million
events costs a few thousand questions. An event of at least `keep_from_ps` gets its own row; a
shorter one is folded into the event around it, leaving its bits there and its time in the name's
totals; DROP means that it is ignored. Events of one kind that follow each other without a pause
share a row if `join_gap_ps` allows it.
"""

from __future__ import annotations

from functools import lru_cache

from stall_analyzer.model.units import PS_PER_MS, PS_PER_US

KEEP = 0
FOLD = (1 << 62) - 1  # longer than any event can be
DROP = -1

# Rows for events shorter than these would only cost memory: the fold bits say enough.
OP_KEEP_FROM_PS = PS_PER_MS  # an allocator wait shorter than 1 ms is not one (allocator_waits.py)
PIPELINE_KEEP_FROM_PS = 50 * PS_PER_US
OTHER_KEEP_FROM_PS = 200 * PS_PER_US  # names without a rule, including HLO ops
PYTHON_KEEP_FROM_PS = PS_PER_MS  # `$file.py:12 function` of the Python tracer
DELETE_KEEP_FROM_PS = PS_PER_MS  # deleting a handle takes this long only when an iterator ends

# Decoded with a row for each event, a trace takes about as much memory as its file.
SHOWN_IN_FULL_BYTES = 128 << 20
LARGE_SHOWN_FROM_PS = 5 * PS_PER_US  # for such large files; half of their events are shorter

# An executor writes an event for each handful of ops, a microsecond apart: 96 of 100 within this.
EXECUTOR_JOIN_GAP_PS = 5 * PS_PER_US

# Bits that a folded op leaves on the executor run around it.
BIT_OP = 1  # any op at all
BIT_GRADIENT = 2  # a backward pass: this is training, not validation
BIT_UPDATE = 4  # a variable was changed by an optimizer
BIT_IS_FINITE = 8  # loss scaling looked at the gradients

UPDATE_OPS = frozenset(
    {"AssignSubVariableOp", "ResourceApplyAdam", "ResourceApplyGradientDescent",
     "ResourceApplyKerasMomentum", "ResourceApplyMomentum", "ResourceApplyRMSProp",
     "ResourceApplyAdagrad", "ResourceApplyAdagradV2", "ResourceApplyAdadelta",
     "ResourceApplyFtrl", "ResourceApplyAdamWithAmsgrad", "ResourceApplyAdaMax"}
)  # fmt: skip
CHECK_OPS = frozenset(
    {"CheckNumerics", "CheckNumericsV2", "DebugNumericSummary", "DebugNumericSummaryV2",
     "DebugIdentity", "DebugIdentityV2", "DebugIdentityV3"}
)  # fmt: skip
PY_FUNC_OPS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
INPUT_OPS = frozenset(
    {"IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional",
     "MultiDeviceIteratorGetNextFromShard", "OneShotIterator"}
)  # fmt: skip
# The functions that Keras calls for each batch, by their names in various versions. Some train and
# test under the same name. train_on_batch and test_on_batch call the inner function.
TRAIN_STEPS = frozenset({"multi_step_on_iterator", "one_step_on_iterator", "train_function"})
ON_BATCH_STEP = "one_step_on_data"
TEST_STEPS = TRAIN_STEPS | {"test_function", ON_BATCH_STEP}
PREDICT_STEPS = frozenset(
    {"one_step_on_data_distributed", "multi_step_on_data", "predict_function"}
)
KERAS_STEPS = TEST_STEPS | PREDICT_STEPS
XLA_OPS = frozenset({"_XlaCompile", "_XlaRun", "_XlaCompileAndRun", "XlaLaunch"})

# Events of the training thread and of the executors whose rows the attribution reads.
STRUCTURE = frozenset(
    {"tf.function-graph_building", "EagerExecute", "EagerKernelExecute", "EagerRemoteExecute",
     "KernelAndDeviceFunc::Run", "KernelAndDeviceOp::Run", "FunctionRun",
     "ExecutorState::Process", "ExecutorState::ProcessAsync::Start",
     "ExecutorState::ProcessAsync::Done", "IteratorGetNextOp::DoCompute",
     "IteratorGetNextAsOptionalOp::DoCompute", "MultiDeviceIteratorGetNextFromShard",
     "MemoryAllocation", "MemoryDeallocation", "CpuExecutable::ExecuteAsyncOnStream"}
)  # fmt: skip
# Events that say nothing about the state of training: they inherit the meaning of what encloses
# them.
FILLER = frozenset(
    {"convert_to_tensor", "tf.constant", "TFE_Py_FastPathExecute_C", "TFE_Py_ExecuteCancelable",
     "EagerCopyToDevice", "ValidateInputTypeAndPlacement", "ExecutorPropagateOutputs",
     "TensorHandle::GetResourceHandleInfo WaitReady",
     "PrefetchConsume", "ParallelMapConsume", "MapAndBatchConsume", "ParallelInterleaveConsume",
     "ParallelBatchConsume"}
)  # fmt: skip

# The callback of a map function copies its result into the batch.
PIPELINE_PREFIXES = (
    "Iterator::", "PrefetchProduce", "ParallelMapProduce", "MapAndBatch", "ParallelInterleave",
    "InstantiatedCapturedFunction::", "MemoryCacheImpl", "ExecutorDoneCallback",
)  # fmt: skip

# How the path of a stage begins that is not inside another stage of the user's.
PASSING_ON = frozenset({"Iterator", "Root", "Prefetch", "Model", "Options",
                        "MaxIntraOpParallelism", "PrivateThreadPool"})  # fmt: skip

# Stats worth a column. Everything else is skipped.
KEPT_STATS = frozenset(
    {"id", "step_id", "parent_id", "step_num", "epoch_num", "group_id", "_r",
     "_p", "_c", "tf_function_call", "tracing_count", "eager_op", "is_func",
     "kernel_type", "name", "buffer_size", "batch_size", "cpu_budget", "threadpool_size",
     "num_parallel_calls", "parallelism", "element_size", "buffered_elements", "buffer_limit",
     "bytes_reserved", "bytes_allocated", "bytes_available", "requested_bytes",
     "allocation_bytes", "peak_bytes_in_use", "fragmentation", "allocator_name", "tf_op",
     "group_key", "group_size", "instance_key", "num_bytes", "memcpy_details", "correlation_id",
     "kind_src", "kind_dst", "flops", "bytes_accessed", "hlo_op", "hlo_module", "program_id",
     "run_id", "index_on_host"}
)  # fmt: skip

# Lines that `--annotate` adds to a copy of a trace: ours, not what the profiler saw.
ANNOTATIONS = "Stall: "

# Lines that the profiler derived from other lines of the same device plane.
DERIVED_DEVICE_LINES = frozenset(
    {"TensorFlow Ops", "TensorFlow Name Scope", "Framework Ops", "Framework Name Scope",
     "XLA TraceMe", "Source code", "Launch Stats", "Host Offload Ops"}
)  # fmt: skip


# Threads by the beginning or a part of their names: input threads, and those that share one op.
PIPELINE_THREADS = "tf_data_"
INTRA_OP_THREADS = "_Eigen"
MOST_NAMES = 10_000  # whose kinds are remembered, since each is looked up many times


@lru_cache(MOST_NAMES)
def op_type(name: str) -> str:
    """`dense/MatMul:MatMul` -> `MatMul`; empty for names that are not a node's."""
    node, colon, kind = name.rpartition(":")
    return kind if colon and node and not node.endswith(":") else ""


def is_op(name: str) -> bool:
    return op_type(name) != ""


def calls_python(name: str) -> bool:
    """An op that calls a Python function."""
    return op_type(name) in PY_FUNC_OPS


def drop_line(plane_name: str, line_name: str) -> bool:
    if line_name.startswith(ANNOTATIONS):
        return True
    return plane_name.startswith("/device:") and line_name in DERIVED_DEVICE_LINES


@lru_cache(MOST_NAMES)
def keep_from_ps(plane_name: str, name: str) -> int:
    """How long an event with this name must be to get its own row: KEEP, FOLD, DROP or ps."""
    if plane_name.startswith("/device:"):
        return KEEP
    if name.startswith("ThreadpoolListener::"):
        return DROP  # zero-length noise, about half of all events
    if name in STRUCTURE or name.startswith("EagerLocalExecute: "):
        return KEEP
    if name in FILLER:
        return FOLD
    if name == "TFE_DeleteTensorHandle":
        return DELETE_KEEP_FROM_PS
    if name.startswith("$"):
        return PYTHON_KEEP_FROM_PS
    if name.startswith(PIPELINE_PREFIXES):
        return KEEP if _is_outermost_stage(name) else PIPELINE_KEEP_FROM_PS
    kind = op_type(name)
    if kind:
        special = kind in PY_FUNC_OPS or kind in CHECK_OPS or kind in INPUT_OPS or kind in XLA_OPS
        return KEEP if special or kind.startswith("Collective") else OP_KEEP_FROM_PS
    return KEEP if name.startswith("Collective") else OTHER_KEEP_FROM_PS


def _is_outermost_stage(name: str) -> bool:
    """Stages that handle whole batches, however fast: their parameters say what a batch is made
    of."""
    *around, _ = name.split("::")
    return len(around) > 1 and set(around) <= PASSING_ON


def shortest_shown_ps(file_bytes: int) -> int:
    """How long an event must be to be shown to a reader: if the file fits in memory, all are shown;
    if it is larger, only those that a screen might show, so that it fits, too."""
    times_too_large = file_bytes // SHOWN_IN_FULL_BYTES
    return times_too_large * LARGE_SHOWN_FROM_PS


def join_gap_ps(name: str) -> int:
    """Pauses up to this long do not separate events with this name and the same `id`; 0 if all
    do."""
    return EXECUTOR_JOIN_GAP_PS if name == "ExecutorState::Process" else 0


@lru_cache(MOST_NAMES)
def fold_bits(name: str) -> int:
    """What a folded or kept op of this name says about the executor run around it."""
    kind = op_type(name)
    if not kind:
        return 0
    bits = BIT_OP
    if "gradient_tape/" in name or "gradients/" in name:
        bits |= BIT_GRADIENT
    if kind in UPDATE_OPS:
        bits |= BIT_UPDATE | BIT_GRADIENT
    if kind == "IsFinite":
        bits |= BIT_IS_FINITE
    return bits
