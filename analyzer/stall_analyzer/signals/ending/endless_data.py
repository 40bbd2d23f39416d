"""An epoch that cannot end: its data has no end, and fit was not told when to stop.

tf.data runs `repeat()` as a stage of its own, ForeverRepeat. Keras knows the steps of an epoch from
`steps_per_epoch` or from the size of the data; where it knows none, the epoch ends with the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stall_analyzer.captures.capture_format import MarkName
from stall_analyzer.captures.stack_frames import Frame, frame_of
from stall_analyzer.model.event_log import Capture
from stall_analyzer.model.patterns import pattern
from stall_analyzer.model.records import dataclass
from stall_analyzer.signals.ending.python_stacks import stack_of

# Stages after which endless data may still end: with another input, after a number of elements, or
# when a condition fails.
MAY_END = pattern(r"^(Zip|FiniteTake|Take|TakeWhile|Sample|Choose|Directed|Window|ParseExample)")
FOREVER = "ForeverRepeat"
# shuffle() and repeat(), fused by tf.data: how often it repeats cannot be seen. But where the size
# of what it reads is known, Keras would know the total size, if there were an end.
FUSED = "ShuffleAndRepeat"
SIZE_IS_KNOWN = pattern(
    r"^(TensorSlice|FromTensor|Tensor|Range|(Parallel)?Batch(V\d)?|PaddedBatch(V\d)?"
    r"|(Parallel)?Map(V\d)?|MapAndBatch|Prefetch|MemoryCache(Impl)?|FileCache|Cache|Shuffle(V\d)?"
    r"|FiniteSkip|FiniteRepeat|FiniteTake|Shard)$"
)


@dataclass(frozen=True)
class EndlessData:
    """Why the epoch or validation that was under way when the capture ended cannot end."""

    place: Frame | None = None  # the user's own line that called fit
    of_validation: bool = False
    generator: Frame | None = None  # one that yields forever; otherwise the data repeats

    @property
    def argument(self) -> str:
        """The argument of fit that would end it."""
        return "validation_steps" if self.of_validation else "steps_per_epoch"

    @property
    def sentence(self) -> str:
        at = f" at {self.place.place}" if self.place is not None else ""
        what = "validation" if self.of_validation else "first epoch"
        why = "the data repeats without end (repeat())"
        if self.generator is not None:
            why = f"the generator at {self.generator.place} yields forever"
        # Steps continue in such an epoch, and the model learns; during validation it does not.
        does = "never ends" if self.of_validation else "could not end"
        return f"Its {what} {does}: {why}, and fit{at} was given no {self.argument}"


def endless_data(capture: Capture | None, stages: Iterable[str]) -> EndlessData | None:
    """`stages`: paths of the training's input, such as "Root::Prefetch::ForeverRepeat"."""
    if capture is None or not capture.marks:
        return None
    if capture.marks[-1].what == MarkName.VALIDATION_BEGIN and capture.marks[-1].endless:
        return EndlessData(_place(capture), of_validation=True)
    begin = capture.first_fit[0]
    ended = {mark.what for mark in capture.marks} & {MarkName.EPOCH_END, MarkName.VALIDATION_BEGIN}
    if not ended and begin.endless:
        return EndlessData(_place(capture), generator=frame_of(begin.where))
    knows_steps = begin.what != MarkName.FIT_BEGIN or begin.steps is not None
    paths = [*stages]
    if ended or knows_steps or not any(_never_ends(path, paths) for path in paths):
        return None
    return EndlessData(_place(capture))


def _never_ends(path: str, paths: Sequence[str]) -> bool:
    *around, stage = path.split("::")
    repeats = stage == FOREVER or (stage == FUSED and _size_is_known_below(path, paths))
    return repeats and not any(map(MAY_END.match, around))


def _size_is_known_below(path: str, paths: Sequence[str]) -> bool:
    below = [other.rpartition("::")[2] for other in paths if other.startswith(f"{path}::")]
    return bool(below) and all(map(SIZE_IS_KNOWN.match, below))


def _place(capture: Capture) -> Frame | None:
    """The outermost line of the user's own code, on any stack of the main thread."""
    mains = [look.main for look in capture.looks if look.main is not None]
    users = [f for main in mains for f in stack_of(main).frames if f.is_users]
    return users[-1] if users else None
