"""Every scenario: its name, the bucket that must come out on top, and what happens in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Scenario:
    name: str  # also the name of its function
    module: str
    primary: str
    description: str
    # "graph" | "eager" | "memory": how closely it must be recovered
    mode: str = "graph"
    env: Mapping[str, str] = field(default_factory=dict)


# Makes the CPU's allocator count, wait and fail as a GPU's does.
LIMITED = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "500"}

SCENARIOS = (
    Scenario("in_py_map", "input_stalls", "input", "py_function in map, 25 ms a batch"),
    Scenario("in_generator", "input_stalls", "input", "from_generator, 30 ms a batch"),
    Scenario("in_generator_unsized", "input_stalls", "input", "the same, length unknown"),
    Scenario("in_bursts", "input_stalls", "input", "two reads of 0.9 s and 0.7 s"),
    Scenario("in_first_element", "input_stalls", "input", "the first batch takes 2 s"),
    Scenario("in_pydataset", "input_stalls", "input", "keras PyDataset, 30 ms a batch"),
    Scenario("in_pydataset_workers", "input_stalls", "input", "PyDataset, 3 workers, 120 ms"),
    Scenario("in_gil", "input_stalls", "host", "PyDataset workers that hold the GIL"),
    Scenario("in_python_generator", "input_stalls", "input", "a plain Python generator"),
    Scenario("in_shuffle_fill", "input_stalls", "input", "shuffle(500) over a slow map"),
    Scenario("in_cache_fill", "input_stalls", "input", "cache() in its first pass"),
    Scenario("in_small_files", "input_stalls", "input", "24000 files, read one by one"),
    Scenario("in_jpeg", "input_stalls", "input", "decode_jpeg in a serial map"),
    Scenario("in_tfrecord_gz", "input_stalls", "input", "a gzipped TFRecord file"),
    Scenario("in_steps_per_execution", "input_stalls", "input", "8 steps a call, slow reads"),
    Scenario("in_hidden", "input_stalls", "compute", "slow reads hidden behind the step"),
    Scenario("in_contention", "input_stalls", "input", "input takes the step's cores"),
    Scenario("in_contention_jpeg", "input_stalls", "compute", "decoding takes its cores"),
    Scenario("in_loop", "input_stalls", "input", "custom loop with step markers"),
    Scenario("in_loop_unmarked", "input_stalls", "input", "custom loop without markers"),
    Scenario("c_trace", "compile_stalls", "compile", "0.7 s of Python in call(), traced twice"),
    Scenario("c_big_graph", "compile_stalls", "compile", "70 layers to trace and optimize"),
    Scenario("c_jit", "compile_stalls", "compile", "XLA, jit_compile=True"),
    Scenario("c_jit_remainder", "compile_stalls", "compile", "XLA again for the last batch"),
    Scenario("c_variable_init", "compile_stalls", "compile", "wide variables made in fit()"),
    Scenario("c_retrace_shapes", "compile_stalls", "compile", "a new shape every third step"),
    Scenario("c_retrace_python", "compile_stalls", "compile", "a new Python number likewise"),
    Scenario("h_sleep", "host_stalls", "host", "a callback sleeps 30 ms a batch"),
    Scenario("h_sleep_no_events", "host_stalls", "host", "the same without event files"),
    Scenario("h_checkpoint", "host_stalls", "host", "ModelCheckpoint every 2 batches"),
    Scenario("h_tf_checkpoint", "host_stalls", "host", "tf.train.Checkpoint every 2 batches"),
    Scenario("h_busy_python", "host_stalls", "host", "garbage collection every batch"),
    Scenario("h_histograms", "host_stalls", "host", "histograms of all weights every batch"),
    Scenario("ok_healthy", "host_stalls", "compute", "ready batches, heavy steps"),
    Scenario("ok_conv", "host_stalls", "compute", "a small convolutional net"),
    Scenario("ok_mixed_precision", "host_stalls", "compute", "mixed_bfloat16"),
    Scenario("v_compute", "host_stalls", "compute", "validation takes half of the epoch"),
    Scenario("v_input", "host_stalls", "input", "validation waits for its data"),
    Scenario("n_nan", "numerics_stalls", "numerics", "a NaN in batch 12 poisons the weights"),
    Scenario("n_explodes", "numerics_stalls", "numerics", "a learning rate of 10,000"),
    Scenario("n_loss_scale", "numerics_stalls", "numerics", "loss scaling skips most updates"),
    Scenario("m_retry", "memory_stalls", "memory", "waits 1.6 s for memory", "memory", LIMITED),
    Scenario("m_retry_often", "memory_stalls", "memory", "three such waits", "memory", LIMITED),
    Scenario(
        "m_out_of_memory", "memory_stalls", "memory", "ten seconds in vain", "memory", LIMITED
    ),
    Scenario("e_heavy_kernels", "eager_stalls", "compute", "run_eagerly, heavy kernels", "eager"),
    Scenario("e_python_bound", "eager_stalls", "host", "run_eagerly, tiny kernels", "eager"),
    Scenario("e_input", "eager_stalls", "input", "run_eagerly, slow generator", "eager"),
    Scenario("x_straggler", "communication_stalls", "communication", "the other worker is late"),
    Scenario(
        "x_straggler_twice", "communication_stalls", "communication", "it is very late, twice"
    ),
    Scenario(
        "mix_generator_trace_callback", "mixes", "input", "generator, tracing, sleeping callback"
    ),
    Scenario(
        "mix_map_checkpoint_validation", "mixes", "input", "Python map, checkpoints, validation"
    ),
    Scenario("mix_xla_bursts_callback", "mixes", "compile", "XLA, bursts of input, callback"),
    Scenario("mix_first_element_heavy_steps", "mixes", "input", "late first batch, heavy steps"),
    Scenario("mix_many_steps_per_call", "mixes", "host", "5 steps a call, input, callback"),
    Scenario("mix_nan_slow_input", "mixes", "numerics", "NaN, prefetched input, callback"),
    Scenario(
        "mix_memory_input_callback", "mixes", "memory", "memory, input, callback", "memory", LIMITED
    ),
    Scenario("mix_loop", "mixes", "input", "custom loop that retraces, waits and sleeps"),
)
