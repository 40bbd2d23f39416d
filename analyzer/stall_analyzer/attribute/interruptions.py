"""What the training thread's own work loses to input that runs at the same time.

Between two graphs the thread runs Python and starts ops. Input takes time from that in two ways:
Python of the pipeline holds the interpreter, which changes hands only after 5 ms or when its holder
releases it; and threads of the pipeline wake up on the core that the thread is running on.

Every step does the same things in the same order, so the run itself tells how long each of them
takes undisturbed: as long as in the quickest tenth of the steps, and a little more. What takes much
longer while input is at work was interrupted. In a run that is never disturbed, next to nothing
looks interrupted, because what is usual allows for the scatter of calm runs.

After a graph the thread only takes the interpreter back. It cannot have worked in that time, so
everything beyond the usual is waiting, however long: the holder may be collecting garbage. Any
other piece may be work: there, what most steps lose, or a time slice, is the limit.

A Python function of the pipeline may also sleep or wait for a file, and then disturbs nothing. It
counts only if the thread lost much of its time while it ran.
"""

from __future__ import annotations

import numpy as np

from stall_analyzer.decode.vocabulary import PIPELINE_KEEP_FROM_PS
from stall_analyzer.model.causes import code, codes_of_bucket
from stall_analyzer.model.columns import percentile
from stall_analyzer.model.intervals import Tiling, among, covered_time, union
from stall_analyzer.model.records import dataclass
from stall_analyzer.model.units import PS_PER_MS, Bools, Float64s, Int64s

Spans = tuple[Int64s, Int64s]

OWN_WORK = ("host.python", "host.dispatch", "host.eager")
NONE = np.zeros(0)
LEAST_STEPS = 20  # so that a tenth of them means something
QUICK = 10  # percent
# In runs with nothing in the background, the mean is 1.1 to 1.4 times the quickest tenth.
USUAL = 1.25
INTERRUPTED = 1.5
# sys.getswitchinterval(); the time slices of Linux's scheduler are about as long.
SLICE_PS = 5 * PS_PER_MS
# Events shorter than this are not recorded: input with pauses of a few of them counts as always at
# work.
PAUSE_PS = 4 * PIPELINE_KEEP_FROM_PS
# A thread that loses more of its time than this while Python of the pipeline runs is waiting for
# it. With functions that sleep, it was up to 0.4: when they wake up, they need the interpreter as
# well.
LOCKED_OUT = 0.45
MANY_PIECES = 20
# In a short profile, the share comes from fewer pieces. Then it must be larger beyond doubt.
LEAST_PIECES = 5
STANDARD_ERRORS = 2.0
# Waits for the interpreter differ from step to step by about this factor.
SCATTER = 3


@dataclass(frozen=True)
class Interruptions:
    lost: Float64s  # per tile
    python_is_awake: bool  # the pipeline's Python held the interpreter


@dataclass(frozen=True)
class _Pieces:
    """Tiles of the thread's own work, in steps with the usual sequence."""

    tile: Int64s
    start: Int64s
    end: Int64s
    usual: Float64s  # what such a piece takes undisturbed
    typical: Float64s  # what it takes in half of the steps
    hands_back: Bools  # after a graph: the thread takes the interpreter back, and little else

    @property
    def length(self) -> Int64s:
        return self.end - self.start


def interruptions(
    tiling: Tiling, step_start: Int64s, native: Spans, python: Spans, computes: bool = False
) -> Interruptions:
    """`native`, `python`: when threads of the pipeline were at work natively and in Python
    functions; `computes`: whether the steps show that those functions compute."""
    lost = np.zeros(len(tiling.labels))
    pieces = [p for cause in OWN_WORK if (p := _pieces(tiling, step_start, cause)) is not None]
    by_native = [_lost(p, _without_pauses(native), _slice(p)) for p in pieces]
    by_python = [_lost(p, union(*python), _most_waited(p)) for p in pieces]
    awake = computes or _locked_out(pieces, by_python, union(*python))
    for piece, one, other in zip(pieces, by_native, by_python, strict=True):
        lost[piece.tile] = np.maximum(one, other) if awake else one
    return Interruptions(lost, awake)


def _pieces(tiling: Tiling, step_start: Int64s, cause: str) -> _Pieces | None:
    """The n-th piece of one step is compared with the n-th piece of all others."""
    tile = np.flatnonzero(tiling.labels == code(cause))
    step = np.searchsorted(step_start, tiling.bounds[tile], side="right") - 1
    tile, step = tile[step >= 0], step[step >= 0]
    per_step = np.bincount(step, minlength=len(step_start))
    if len(tile) == 0 or len(step_start) < LEAST_STEPS:
        return None
    counts = np.bincount(per_step[per_step > 0])
    form = int(counts.argmax())
    if counts[form] < LEAST_STEPS:
        return None
    tile = tile[per_step[step] == form].reshape(-1, form)
    length = np.diff(tiling.bounds)[tile]
    quick = np.array([percentile(of_piece, QUICK) for of_piece in length.T])
    if cause == "host.dispatch":  # returning results takes no longer than starting a graph
        quick = np.minimum.accumulate(quick)
    usual = np.broadcast_to(USUAL * quick, tile.shape).ravel()
    typical = np.broadcast_to(np.median(length, axis=0), tile.shape).ravel()
    tile = tile.ravel()
    hands_back = among(tiling.labels[np.maximum(tile - 1, 0)], codes_of_bucket("compute"))
    hands_back &= cause == "host.dispatch"
    return _Pieces(tile, tiling.bounds[tile], tiling.bounds[tile + 1], usual, typical, hands_back)


def _slice(pieces: _Pieces) -> Float64s:
    """Two that share a core or the interpreter get half each; the rest is the thread's work."""
    return SLICE_PS + pieces.usual


def _most_waited(pieces: _Pieces) -> Float64s:
    """The longest wait for the interpreter: a piece may need it several times, and more than one
    thread may be ahead. A wait far longer than in other steps is more likely work of this step."""
    waited = SCATTER * np.maximum(pieces.typical - pieces.usual, 0.0)
    return np.where(pieces.hands_back, np.inf, _slice(pieces) + waited)


def _lost(pieces: _Pieces, beside: Spans, most: Float64s) -> Float64s:
    """What each piece took beyond the usual, if input interrupted it."""
    disturbed = 2 * covered_time(pieces.start, pieces.end, *beside) > pieces.length
    interrupted = disturbed & (pieces.length > INTERRUPTED / USUAL * pieces.usual)
    return np.where(interrupted, np.minimum(pieces.length - pieces.usual, most), 0.0)


def _locked_out(pieces: list[_Pieces], lost: list[Float64s], python: Spans) -> bool:
    beside = [covered_time(p.start, p.end, *python).astype(np.float64) for p in pieces]
    whole, part = np.concatenate([*beside, NONE]), np.concatenate([*lost, NONE])
    interrupted = int((part > 0).sum())
    if interrupted < LEAST_PIECES:
        return False
    share = part.sum() / whole.sum()
    if interrupted < MANY_PIECES:
        share -= STANDARD_ERRORS * np.sqrt(((part - share * whole) ** 2).sum()) / whole.sum()
    return bool(share > LOCKED_OUT)


def _without_pauses(spans: Spans) -> Spans:
    start, end = union(*spans)
    if len(start) == 0:
        return start, end
    apart = start[1:] - end[:-1] > PAUSE_PS
    return start[np.append(True, apart)], end[np.append(apart, True)]
