"""What TensorFlow, Keras, shells and schedulers really write to a terminal, shortened."""

# ruff: noqa: E501  lines as they are written

from __future__ import annotations

OUT_OF_MEMORY = """\
W0000 00:00:1700000060.468518   24154 op_kernel.cc:1858] OP_REQUIRES failed at constant_op.cc:176 \
: RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[256,512] and type float
Traceback (most recent call last):
  File "/home/me/train.py", line 41, in <module>
    model.fit(data)
  File "/venv/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py", line 122, in handler
    raise e.with_traceback(filtered_tb) from None
  File "/venv/lib/python3.11/site-packages/tensorflow/python/eager/execute.py", line 53, in quick
    tensors = pywrap_tfe.TFE_Py_Execute(ctx._handle, device_name, op_name,
  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:

Detected at node sequential/dense/MatMul defined at (most recent call last):
  File "/home/me/train.py", line 41, in <module>

  File "/home/me/layers.py", line 12, in call

  File "/venv/lib/python3.11/site-packages/keras/src/ops/operation.py", line 63, in __call__

OOM when allocating tensor with shape[256,512] and type float on /device:GPU:0 by allocator GPU_0_bfc
\t [[{{node sequential/dense/MatMul}}]]
Hint: If you want to see a list of allocated tensors when OOM happens, add \
report_tensor_allocations_upon_oom to RunOptions for current allocation info.
 [Op:__inference_multi_step_on_iterator_266]
"""

IN_A_GENERATOR = """\
Traceback (most recent call last):
  File "/home/me/train.py", line 47, in <module>
    model.fit(data)
  File "/venv/lib/python3.11/site-packages/tensorflow/python/eager/execute.py", line 53, in quick
    tensors = pywrap_tfe.TFE_Py_Execute(ctx._handle, device_name, op_name,
tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:

Detected at node PyFunc defined at (most recent call last):
<stack traces unavailable>
ValueError: bad file 17
Traceback (most recent call last):

  File "/venv/lib/python3.11/site-packages/tensorflow/python/ops/script_ops.py", line 269, in __call__
    ret = func(*args)

  File "/home/me/train.py", line 45, in generate
    raise ValueError("bad file 17")

ValueError: bad file 17


\t [[{{node PyFunc}}]]
\t [[IteratorGetNext]] [Op:__inference_multi_step_on_iterator_236]
"""

PLAIN_ERROR = """\
Traceback (most recent call last):
  File "/home/me/train.py", line 9, in <module>
    main()
  File "/home/me/train.py", line 5, in main
    open("data.csv")
FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'
"""

KERAS_2 = "Epoch 1/5\n  1/100 [......] - ETA: 3:12 - loss: 0.9\b\b\b\b 12/100 [==>...] - ETA: 9s - loss: 0.8"
KERAS_3 = (
    "Epoch 2/5\n\r\x1b[1m 1/20\x1b[0m \x1b[32m━\x1b[0m\x1b[37m━━━\x1b[0m \x1b[1m6s\x1b[0m 359ms/step "
    "- loss: 0.5\r\x1b[1m 7/20\x1b[0m \x1b[32m━━━\x1b[0m\x1b[37m━━\x1b[0m \x1b[1m4s\x1b[0m 21ms/step - loss: nan"
)
KERAS_QUIET = "Epoch 3/5\n20/20 - 1s - 48ms/step - loss: 0.25\n"

SHUFFLE = """\
I0000 00:00:1700000010.667859   28031 shuffle_dataset_op.cc:453] ShuffleDatasetV3:3: Filling up \
shuffle buffer (this may take a while): 940 of 3000
I0000 00:00:1700000020.677655   28031 shuffle_dataset_op.cc:453] ShuffleDatasetV3:3: Filling up \
shuffle buffer (this may take a while): 1883 of 3000
I0000 00:00:1700000032.667859   28031 shuffle_dataset_op.cc:483] Shuffle buffer filled.
"""
SHUFFLE_OF_2_9 = """\
2022-05-01 10:00:11.000000: I tensorflow/core/kernels/data/shuffle_dataset_op.cc:392] Filling up \
shuffle buffer (this may take a while): 500 of 9000
2022-05-01 10:00:21.500000: I tensorflow/core/kernels/data/shuffle_dataset_op.cc:392] Filling up \
shuffle buffer (this may take a while): 1000 of 9000
"""

PTX = (
    "2023-05-31 14:45:08.138842: W tensorflow/core/common_runtime/gpu/gpu_device.cc:2052] TensorFlow "
    "was not built with CUDA kernel binaries compatible with compute capability 9.0. CUDA kernels "
    "will be jit-compiled from PTX, which could take 30 minutes or longer.\n"
)
SLOW_COMPILE = """\
2025-03-19 07:30:02.045318: E external/xla/xla/service/slow_operation_alarm.cc:73] 
********************************
[Compiling module a_inference_step_9] Very slow compile? If you want to file a bug, run with envvar \
XLA_FLAGS=--xla_dump_to=/tmp/foo and attach the results.
********************************
2025-03-19 07:30:14.895694: E external/xla/xla/service/slow_operation_alarm.cc:140] The operation \
took 2m12.850942799s
"""
RETRACING = (
    "WARNING:tensorflow:5 out of the last 5 calls to <function step at 0x7ff86ed0f240> triggered "
    "tf.function retracing. Tracing is expensive and the excessive number of tracings could be due\n"
)
RAN_OUT = (
    "/venv/lib/python3.11/site-packages/keras/src/trainers/epoch_iterator.py:116: UserWarning: Your "
    "input ran out of data; interrupting training. Make sure that your dataset or generator can "
    "generate at least `steps_per_epoch * epochs` batches.\n  self._interrupted_warning()\n"
)
ALLOCATION = (
    "W0000 00:00:1700000010.667859   28031 cpu_allocator_impl.cc:83] Allocation of 3200000000 exceeds "
    "10% of free system memory.\n"
)
NO_LIBRARIES = (
    "2021-02-01 10:00:00.000000: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1757] Cannot "
    "dlopen some GPU libraries. Please make sure the missing libraries mentioned above are installed "
    "properly if you would like to use GPU. Skipping registering GPU devices...\n"
)
PARTIAL_CACHE = (
    "W0000 00:00:1700000010.667859   28031 cache_dataset_ops.cc:912] The calling iterator did not "
    "fully read the dataset being cached. In order to avoid unexpected truncation of the dataset, "
    "the partially cached contents of the dataset  will be discarded.\n"
)
NO_GRADIENTS = (
    "/venv/lib/python3.11/site-packages/keras/src/optimizers/base_optimizer.py:862: UserWarning: "
    "Gradients do not exist for variables ['m/dense_3/kernel', 'm/dense_3/bias'] when minimizing the "
    "loss. If using `model.compile()`, did you forget to provide a `loss` argument?\n"
)
NCCL = "node3:376586:377443 [4] ibvwrap.c:130 NCCL WARN Call to ibv_create_qp failed\n"

TIME_LIMIT = (
    "slurmstepd: error: *** JOB 13055114 ON node17 CANCELLED AT 2020-07-11T22:48:26 DUE TO TIME "
    "LIMIT ***\n"
)
OOM_KILL = (
    "/var/spool/slurmd/job00191/slurm_script: line 28:  8156 Killed                  python3 main.py\n"
    "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=191.batch cgroup. Some of your "
    "processes may have been killed by the cgroup out-of-memory handler.\n"
)
