"""Training waited for a shuffle buffer to fill.

What it finds
A `shuffle(n)` whose buffer took a long time to fill before the first step of the epoch.

Why it stalls
`shuffle(n)` produces nothing until it has read n elements. If each of them first goes through a
slow map, the map runs n times before the first batch. Each new iterator, and so each epoch of
`fit`, begins with an empty buffer, unless the data repeats within one iterator.

How it is measured
The wait for the first batch, minus a typical wait, while the Shuffle stage was being read.

Example
`ds.map(decode).shuffle(10_000)`: ten thousand images are decoded before the first step.

What to do
Shuffle something cheap (file names, indices, records) and map afterward; the buffer then also needs
less memory. Or make the buffer smaller. Keep `shuffle` after any `cache()`; a cache after it would
freeze the order.

Blind spots
The elements have to be produced in any case. Where the pipeline is slower than the steps, the time
to fill the buffer is only a wait that would otherwise come later; the predicted saving counts only
the work that could be hidden behind the steps.
"""

from __future__ import annotations

from stall_analyzer.detectors.gains import every_epoch, partly
from stall_analyzer.detectors.input.faster_input import BESIDE_INPUT, faster_beside_input
from stall_analyzer.detectors.input.stage_code import call_of, is_stored, parallel_call_of
from stall_analyzer.detectors.severity import CONSIDER_SHARE, severity_of
from stall_analyzer.model.findings import Change, Finding, Gain
from stall_analyzer.model.format import seconds
from stall_analyzer.signals.input.culprit import elements_per_batch, is_map
from stall_analyzer.signals.input.input_pipeline import Stage
from stall_analyzer.signals.signals import Signals

ID = "ST005"
BUCKET = "input"

# While steps run, the rest of the pipeline gets only some of the cores.
SURE_SHARE = 0.5
SMALLER = 4  # try a buffer that fills in a quarter of the time first


def check(signals: Signals) -> Finding | None:
    lost = signals.causes_ps["input.shuffle_fill"]
    again = signals.comes_again("input.shuffle_fill")
    severity = severity_of(signals.share(lost), once_ps=None if again else lost)
    shuffles = signals.pipeline.of_kind("Shuffle")
    if severity is None or not shuffles:
        return None
    stage = max(shuffles, key=lambda s: s.parameters.get("buffer_size", 0))
    size = stage.parameters.get("buffer_size")
    undone = _never_used_ps(signals, stage, lost)
    saved = max(_hidden_if_spread_ps(signals, lost), undone)
    held = signals.share(saved) < CONSIDER_SHARE
    slowest = _slowest_below(signals, stage)
    through = f" through {slowest.label}" if slowest else ""
    call = f"shuffle({size})" if size else "shuffle"
    # Work that is not done takes no cores from training either.
    beside = faster_beside_input(signals, in_python=False) if undone else Gain()
    gain = partly(saved, SURE_SHARE, 1.0) + beside
    when = (
        "once" if not again else "in each epoch, because a new iterator begins with an empty buffer"
    )
    return Finding(
        severity="note" if held else severity,
        title=f"{call} took {seconds(lost)} to fill before the first step",
        explanation=(
            f"{stage.label} produces nothing until its buffer is full, and filling it{through} "
            f"took {signals.with_share(lost)}. No step could run in that time. The buffer is "
            f"filled {when}."
            + (
                " The pipeline is slower than the steps anyway, so a smaller buffer would only "
                "move the wait: speed up the stages that feed it."
                if held
                else f" Without the buffer, {seconds(saved)} of that work would be hidden "
                "behind the steps or not be done at all."
            )
        ),
        change=_change(signals, stage, slowest),
        lost_ps=lost,
        blames=BESIDE_INPUT if undone else (),
        gain=gain,
        later_gain=every_epoch(gain, signals) if again else Gain(),
        confidence=0.8,
        evidence=signals.evidence_of("input.shuffle_fill", f"fills {stage.label}"),
    )


def _change(signals: Signals, shuffle: Stage, slowest: Stage | None) -> Change:
    """The buffer goes before a slow map, but never before a cache: that would freeze the order."""
    size = shuffle.parameters.get("buffer_size", 0)
    call, smaller = f"shuffle({size or 'k'})", f"shuffle({max(size // SMALLER, 1) or 'k'})"
    below = signals.pipeline.below(shuffle)
    keep = 'cache("cache_file").' if any(s.kind.startswith("FileCache") for s in below) else ""
    keep = keep or ("cache()." if any("Cache" in s.kind for s in below) else "")
    if slowest is None or not is_map(slowest) or is_stored(signals.pipeline, slowest):
        return Change(
            "Use a smaller buffer. To keep the data well mixed, shuffle the file names, or shuffle "
            "the data once when you store it.",
            before=f"ds.{call}.batch(n)",
            after=f"ds.{smaller}.batch(n)",
        )
    kept = " Keep shuffle() after cache(), or all epochs will have the same order." if keep else ""
    return Change(
        "Shuffle before the expensive stage, where elements are cheap: file names, indices or "
        f"undecoded records. Or use a smaller buffer.{kept}",
        before=f"ds.{keep}{call_of(slowest)}.{call}.batch(n)  # {slowest.label}",
        after=f"ds.{keep}{call}.{parallel_call_of(slowest)}.batch(n)",
    )


def _hidden_if_spread_ps(signals: Signals, fill_ps: int) -> int:
    """How much of the filling would hide behind the steps if it were spread over them.

    Everything is produced in any case; what does not fit into the steps becomes a wait.
    """
    start, end = signals.step_periods()
    waits = signals.time_of(start, end, "input.wait", "input.shuffle_fill")
    room = int((end - start - waits).sum())
    waited = int(waits.sum())
    produced = waited + (room if signals.pipeline.works_ahead else 0)
    busy = min(signals.produce_ps() * len(start), produced)
    return max(0, min(fill_ps, fill_ps - max(0, busy - room)))


def _never_used_ps(signals: Signals, shuffle: Stage, fill_ps: int) -> int:
    """The cost of elements in the buffer that the epoch does not use, if the buffer holds more."""
    used = elements_per_batch(signals.pipeline, shuffle) * len(signals.training_steps)
    held = min(shuffle.parameters.get("buffer_size", 0), _put_in(signals, shuffle))
    return round(fill_ps * (1 - used / held)) if used < held else 0


def _put_in(signals: Signals, shuffle: Stage) -> int:
    return max((s.count for s in signals.pipeline.stages if s.parent == shuffle.path), default=0)


def _slowest_below(signals: Signals, shuffle: Stage) -> Stage | None:
    own = signals.pipeline.own_ps(signals.intervals_of("input.shuffle_fill"))
    below = signals.pipeline.below(shuffle)
    return max(below, key=lambda s: own[s.path], default=None)
