"""How often the training step was traced, as a capture counted it."""

from __future__ import annotations

import numpy as np

from stall_analyzer.align.logged_epoch import STEP_SECONDS
from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.model.columns import median
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.units import PS_PER_NS, PS_PER_S, Int64s
from stall_analyzer.signals.numerics.losses import first_fit

TRAIN_FUNCTION = Tag.TRACES_OF.removeprefix(Tag.ALL) + "train_function"
# A step in which a graph was built takes several times as long as the others.
LONGER = 3.0


@dataclass(frozen=True)
class CapturedRetraces:
    """Traces of the training step in the first epoch, beyond those of its first call."""

    count: int
    steps: Int64s  # in which they happened, from 0; none where no step was longer than usual
    all_steps: int
    lost_ps: int  # how much longer these steps were than a usual one
    start_ps: Int64s  # of these steps
    end_ps: Int64s


def captured_retraces(timeline: Timeline) -> CapturedRetraces | None:
    """None where nothing counted them, or there were none."""
    capture = timeline.events.capture if timeline.events is not None else None
    zero_ns = timeline.window.start_unix_ns
    if capture is None or zero_ns is None:
        return None
    counts, timed = (first_fit(capture.series.get(tag)) for tag in (TRAIN_FUNCTION, STEP_SECONDS))
    if counts is None or timed is None or len(counts) < 2 or len(timed) == 0:
        return None
    end_ns = zero_ns + timeline.window.duration_ps // PS_PER_NS
    inside = counts.wall_ns <= end_ns
    # The count is read now and then, and written if it has changed: in a step since the last read.
    grown = np.flatnonzero(inside[1:] & (np.diff(counts.value) > 0)) + 1
    if len(grown) == 0:
        return None
    usual = float(median(timed.value))
    since = [counts.step[row - 1] for row in grown]
    made = np.zeros(len(timed), dtype=np.bool_)
    for row, before in zip(grown, since, strict=True):
        made |= (timed.step > before) & (timed.step <= counts.step[row])
    made &= (timed.value > LONGER * usual) & (timed.wall_ns <= end_ns)
    seconds = timed.value[made]
    end_ps = (timed.wall_ns[made] - zero_ns) * PS_PER_NS
    return CapturedRetraces(
        count=int(counts.value[grown[-1]] - counts.value[0]),
        steps=timed.step[made],
        all_steps=timeline.training_steps or int(timed.step[timed.wall_ns <= end_ns].max()) + 1,
        lost_ps=int(np.sum(seconds - usual) * PS_PER_S),
        start_ps=end_ps - (seconds * PS_PER_S).astype(np.int64),
        end_ps=end_ps,
    )
