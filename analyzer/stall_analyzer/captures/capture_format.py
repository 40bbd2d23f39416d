"""The words of a capture: what `tb_stall_plugin.capture` writes and the analyzer reads.

`tb_stall_plugin/capture_format.md` says what they mean. Constants only: both sides import them, and
importing them costs nothing.
"""

from __future__ import annotations

STACKS_HEADER_BYTES = 1024  # in the file described in held_stacks.py
FORMAT = 1  # the `format` field of a start record; a change of meaning needs a new one
OWN_WORK = "StallCapture"  # events of a trace in which the capture itself is at work
STAGING = ".stall"  # prefix of the folders in which traces are written before they are moved


class Tag:
    """Tags of scalars. Those that end in a slash are followed by a name."""

    ALL = "stall/"
    LOSS = "stall/loss"
    # Over all steps since the last measured one; missing if that was the previous step.
    LOSS_MEAN = "stall/losses/mean"
    LOSS_LOWEST = "stall/losses/lowest"
    LOSS_HIGHEST = "stall/losses/highest"
    LOSS_STEPS = "stall/losses/steps"
    LOSS_NOT_FINITE = "stall/losses/not_finite"
    # Followed by the name that Keras's TensorBoard callback uses in its train and validation logs.
    TRAIN = "stall/train/"
    VALIDATION = "stall/validation/"
    LEARNING_RATE = "stall/learning_rate"
    LOSS_SCALE = "stall/loss_scale"
    SKIPPED_UPDATES = "stall/skipped_updates"
    STEP_SECONDS = "stall/step_seconds"
    GRADIENT_NORM = "stall/gradient_norm"
    GRADIENT_NORM_OF = "stall/gradient_norm/"
    UPDATE_RATIO_OF = "stall/update_ratio/"
    DEAD_UNITS_OF = "stall/dead_units/"
    BATCH = "stall/batch/"  # followed by one of BatchNumber
    TRACES_OF = "stall/traces/"
    HOST = "stall/host/"
    DEVICE = "stall/device/"
    BYTES_IN_USE = "/bytes_in_use"  # after DEVICE and the device's name
    KERAS_MODEL = "stall/keras"  # the model, in the form that Keras's TensorBoard callback stores
    RECORD = "stall/record/"  # text summaries: followed by the kind


class BatchNumber:
    """What follows `Tag.BATCH`: numbers from a sample of one batch, or of all batches so far."""

    ROWS = "rows"
    INPUTS, LABELS, OUTPUTS = "inputs", "labels", "outputs"  # followed by one of these four:
    NOT_FINITE = "/not_finite"  # share of the elements
    SMALLEST, LARGEST, SPREAD = "/smallest", "/largest", "/spread"
    INPUTS_CONSTANT = "inputs/constant"  # share of the features that are the same in all rows
    OUTPUTS_CONSTANT = "outputs/constant"  # the same for outputs
    LABELS_MEAN = "labels/mean"
    LABELS_KINDS = "labels/kinds"  # so far: how many different classes
    LABELS_SEEN = "labels/seen"  # so far: how many rows
    LABELS_ENTROPY = "labels/entropy"  # so far, in nats: what a constant answer costs
    LABELS_VARIANCE = "labels/variance"  # so far
    LABELS_WITHIN = "labels/within"  # so far: share of the variance that is within batches
    # For labels and outputs whose shapes broadcast: row by row, and all pairs.
    SQUARES, SQUARES_BROADCAST = "shape/squares", "shape/squares_broadcast"
    ABSOLUTE, ABSOLUTE_BROADCAST = "shape/absolute", "shape/absolute_broadcast"


class HostMetric:
    """What follows `Tag.HOST`, and the names in the `memory` of a dump."""

    RSS = "rss_bytes"
    AVAILABLE = "available_bytes"
    SWAP_USED = "swap_used_bytes"
    LIMIT = "limit_bytes"
    MAJOR_FAULTS = "major_faults"
    CPU = "cpu_seconds"
    READ = "read_bytes"
    MEMORY_STALLED = "memory_stalled_seconds"
    THROTTLED = "throttled_seconds"
    OPEN_FILES = "open_files"


class TrainingPhase:
    """What the training thread was last seen to begin: `phase` in a beat and in a dump."""

    STARTUP = "startup"
    TRAIN_BATCH = "train_batch"
    BETWEEN_BATCHES = "between_batches"
    VALIDATION = "validation"
    EPOCH_END = "epoch_end"
    IDLE = "idle"
    EXIT = "exit"


class Account:
    """What the training thread spends its time on: the columns of the books."""

    PYTHON = "python"  # whatever is in none of the others
    STEP = "step"  # inside a compiled function
    WAIT = "wait"  # part of it: waiting for the batch, inside the step
    INPUT = "input"  # waiting for a batch, outside of any function
    ITERATOR = "iterator"  # creating an iterator
    TEARDOWN = "teardown"  # deleting one, which waits for its threads
    COLLECTIVE = "collective"  # part of the step: waiting for other workers
    REMOTE = "remote"  # waiting for steps that other processes run, as a coordinator does
    # Only in items: what each of these processes did meanwhile, by its own clocks.
    REMOTE_STEP = "remote_step"  # running steps
    REMOTE_WAIT = "remote_wait"  # part of it: waiting for the batch
    CALLBACK = "callback"  # a callback's hook, and everything it calls
    SIDE = "side"  # predict or evaluate, called by the training loop itself
    SAVE = "save"  # saving a model or a checkpoint
    TRACE = "trace"  # building a graph
    RETRACE = "retrace"  # building it again for a function that was traced for an earlier step
    GC = "gc"  # collecting garbage
    LOGGING = "logging"  # Keras's own TensorBoard callback, as far as it logs scalars
    CAPTURE = "capture"  # our own work


class BookPhase:
    """The part of training that a row of the books belongs to."""

    START = "start"  # from the beginning of fit to its first epoch
    TRAIN = "train"
    VALIDATION = "validation"
    EPOCH_END = "epoch_end"  # from the last step, or the validation, to the end of the epoch
    BETWEEN = "between"  # from the end of an epoch to the next


class MarkName:
    """`what` in a mark."""

    FIT_BEGIN = "fit_begin"
    EPOCH_BEGIN = "epoch_begin"
    EPOCH_END = "epoch_end"
    VALIDATION_BEGIN = "validation_begin"
    VALIDATION_END = "validation_end"
    FIT_END = "fit_end"


class WindowEvent:
    """`what` in a window record: what happened to the profiled window."""

    OPENED = "opened"
    SAVED = "saved"
    FAILED = "failed"


class WindowReason:
    """`reason` in a window record: why the window was opened."""

    START = "start"
    SAMPLE = "sample"
    VALIDATION = "validation"
    SLOW_STEP = "slow_step"
    HANG = "hang"


class WindowEnd:
    """`ended_by` in a window record: what ended the window."""

    PLAN = "plan"
    MEMORY = "memory"
    HANG = "hang"
    END = "end"


class CheckName:
    """The checks before the first epoch, in order."""

    DATA = "data"
    LABELS = "labels"
    OUTPUTS = "outputs"
    LOSS = "loss"
    GRADIENTS = "gradients"
    OVERFIT = "overfit"


CHECK_TITLES = {
    CheckName.DATA: "inputs and labels",
    CheckName.LABELS: "labels and loss",
    CheckName.OUTPUTS: "outputs and loss",
    CheckName.LOSS: "first loss",
    CheckName.GRADIENTS: "gradients",
    CheckName.OVERFIT: "memorizing examples",
}


class CheckResult:
    """`result` of a check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_CHECKED = "not_checked"


class CheckFault:
    """What a failed check found."""

    NOT_FINITE = "not_finite"  # NaN or infinity
    SAME_INPUTS = "same_inputs"
    LABELS = "labels"  # do not fit the loss, or the last layer
    OUTPUTS = "outputs"  # do not fit the loss
    NO_GRADIENT = "no_gradient"  # in no layer
    UNREACHED = "unreached"  # some layers get no gradient
    CANNOT_FIT = "cannot_fit"  # not even a single batch


class StopReason:
    """`reason` in a dump (the first four) and at the end (the last three)."""

    NO_STEP = "no_step"
    SIGINT = "sigint"
    SIGTERM = "sigterm"
    EXCEPTION = "exception"
    EXIT = "exit"
