"""The words of a capture: what `tb_stall_plugin.capture` writes and the analyzer reads.

`tb_stall_plugin/capture_format.md` says what they mean. Constants only: both sides import them, and
importing them costs nothing.
"""

from __future__ import annotations

STACKS_HEADER_BYTES = 1024  # of the file described in held_stacks.py
FORMAT = 1  # the `format` field of a start record; a change of meaning needs a new one
OWN_WORK = "StallCapture"  # events of a trace in which the capture itself is at work
STAGING = ".stall"  # how the folders begin in which traces are written before they are moved


class Tag:
    """Scalars. Those that end in a slash are followed by a name."""

    ALL = "stall/"
    LOSS = "stall/loss"
    # Of all steps since the last measured one; where it was the step before, there are none.
    LOSS_MEAN = "stall/losses/mean"
    LOSS_LOWEST = "stall/losses/lowest"
    LOSS_HIGHEST = "stall/losses/highest"
    LOSS_STEPS = "stall/losses/steps"
    LOSS_NOT_FINITE = "stall/losses/not_finite"
    # Followed by what Keras's TensorBoard callback calls it in the logs of train and validation.
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
    BATCH = "stall/batch/"  # followed by a word of BatchNumber
    TRACES_OF = "stall/traces/"
    HOST = "stall/host/"
    DEVICE = "stall/device/"
    BYTES_IN_USE = "/bytes_in_use"  # after DEVICE and the device's name
    KERAS_MODEL = "stall/keras"  # the model, as Keras's TensorBoard callback stores it
    RECORD = "stall/record/"  # text summaries: followed by the kind


class BatchNumber:
    """What follows `Tag.BATCH`: numbers of a sample of one batch, or of all looked at so far."""

    ROWS = "rows"
    INPUTS, LABELS, OUTPUTS = "inputs", "labels", "outputs"  # followed by one of these four:
    NOT_FINITE = "/not_finite"  # share of the elements
    SMALLEST, LARGEST, SPREAD = "/smallest", "/largest", "/spread"
    INPUTS_CONSTANT = "inputs/constant"  # share of the features that are the same in all rows
    OUTPUTS_CONSTANT = "outputs/constant"  # the same of outputs
    LABELS_MEAN = "labels/mean"
    LABELS_KINDS = "labels/kinds"  # so far: different classes
    LABELS_SEEN = "labels/seen"  # so far: rows
    LABELS_ENTROPY = "labels/entropy"  # so far, in nats: what a constant answer costs
    LABELS_VARIANCE = "labels/variance"  # so far
    LABELS_WITHIN = "labels/within"  # so far: share of the variance that is within batches
    # Of labels and outputs whose shapes broadcast: row by row, and each with each.
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
    """What the training thread was last seen to begin: `phase` of a beat and of a dump."""

    STARTUP = "startup"
    TRAIN_BATCH = "train_batch"
    BETWEEN_BATCHES = "between_batches"
    VALIDATION = "validation"
    EPOCH_END = "epoch_end"
    IDLE = "idle"
    EXIT = "exit"


class Account:
    """What the training thread spends its time on: the columns of the books."""

    PYTHON = "python"  # whatever none of the others takes
    STEP = "step"  # inside a compiled function
    WAIT = "wait"  # of that: in the step, for its batch
    INPUT = "input"  # for a batch, outside of any function
    ITERATOR = "iterator"  # making an iterator
    TEARDOWN = "teardown"  # taking one down: its threads are waited for
    COLLECTIVE = "collective"  # of the step: for other workers
    REMOTE = "remote"  # for steps that other processes run, as a coordinator does
    CALLBACK = "callback"  # a hook of one, and all that it calls
    SIDE = "side"  # predict or evaluate, called by the loop itself
    SAVE = "save"  # a model or a checkpoint
    TRACE = "trace"  # building a graph
    RETRACE = "retrace"  # of a function that had been traced for an earlier step
    GC = "gc"  # collecting garbage
    LOGGING = "logging"  # Keras's own callback for TensorBoard, as far as it logs scalars
    CAPTURE = "capture"  # our own work


class BookPhase:
    """The part of training in which a row of the books lies."""

    START = "start"  # from the begin of fit to its first epoch
    TRAIN = "train"
    VALIDATION = "validation"
    EPOCH_END = "epoch_end"  # from the last step, or the validation, to the end of the epoch
    BETWEEN = "between"  # from the end of an epoch to the next


class MarkName:
    """`what` of a mark."""

    FIT_BEGIN = "fit_begin"
    EPOCH_BEGIN = "epoch_begin"
    EPOCH_END = "epoch_end"
    VALIDATION_BEGIN = "validation_begin"
    VALIDATION_END = "validation_end"
    FIT_END = "fit_end"


class WindowEvent:
    """`what` happened to a profiled window."""

    OPENED = "opened"
    SAVED = "saved"
    FAILED = "failed"


class WindowReason:
    """`reason` a window was opened for."""

    START = "start"
    SAMPLE = "sample"
    VALIDATION = "validation"
    SLOW_STEP = "slow_step"
    HANG = "hang"


class WindowEnd:
    """What a window was `ended_by`."""

    PLAN = "plan"
    MEMORY = "memory"
    HANG = "hang"
    END = "end"


class CheckName:
    """The checks before the first epoch, in their order."""

    DATA = "data"
    LABELS = "labels"
    OUTPUTS = "outputs"
    LOSS = "loss"
    GRADIENTS = "gradients"
    OVERFIT = "overfit"


class CheckResult:
    """`result` of one of them."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_CHECKED = "not_checked"


class CheckFault:
    """What was found by one that failed."""

    NOT_FINITE = "not_finite"  # NaN or infinity
    SAME_INPUTS = "same_inputs"
    LABELS = "labels"  # that do not fit the loss, or the last layer
    OUTPUTS = "outputs"  # that do not fit the loss
    NO_GRADIENT = "no_gradient"  # nowhere
    UNREACHED = "unreached"  # some layers get no gradient
    CANNOT_FIT = "cannot_fit"  # a single batch


class StopReason:
    """`reason` of a dump (the first four) and of the end (the last three)."""

    NO_STEP = "no_step"
    SIGINT = "sigint"
    SIGTERM = "sigterm"
    EXCEPTION = "exception"
    EXIT = "exit"
