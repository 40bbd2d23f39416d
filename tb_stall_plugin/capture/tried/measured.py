"""What was measured with and without a change, next to what was predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from stall_analyzer.model.format import between, seconds
from tb_stall_plugin.capture.tried.changes import TriedChange
from tb_stall_plugin.capture.tried.orders import Answer
from tb_stall_plugin.capture.tried.predicted import Prediction

# The time of one and the same program varies by about this share from process to process.
HARDLY = 0.03


@dataclass(frozen=True)
class Measured:
    steps: int
    without_ps: tuple[int, ...]
    with_ps: tuple[int, ...]
    losses: tuple[float | None, float | None]  # after these steps, without and with

    @property
    def saved_ps(self) -> tuple[int, ...]:
        """Of each pair of neighboring runs: whatever else the machine did affected both."""
        return tuple(a - b for a, b in zip(self.without_ps, self.with_ps, strict=True))

    @property
    def usual_saving_ps(self) -> int:
        return round(median(self.saved_ps))

    @property
    def is_clear(self) -> bool:
        """Whether all pairs agree on which is faster."""
        return min(self.saved_ps) > 0 or max(self.saved_ps) < 0


def compared(answers: Sequence[tuple[Answer, Answer]]) -> Measured:
    last_without, last_with = answers[-1]
    return Measured(
        last_without.steps,
        tuple(before.epoch_ps for before, _ in answers),
        tuple(after.epoch_ps for _, after in answers),
        (last_without.loss, last_with.loss),
    )


def in_words(
    finding: str, change: TriedChange, result: Measured, prediction: Prediction | None
) -> str:
    times = len(result.without_ps)
    each = f"{times} times each, alternating" if times > 1 else "once each"
    lines = [
        f"{finding}, tried: {change}",
        f"The first {result.steps:,} steps, {each}:" if result.steps > 1 else f"One step, {each}:",
        "",
        f"  without    {_usual(result.without_ps)}",
        f"  with       {_usual(result.with_ps)}",
        f"  saved      {_usual(result.saved_ps)}",
        f"  predicted  {between(prediction.low_ps, prediction.high_ps) if prediction else '–'}",
        "",
        judged(result, prediction),
    ]
    lost, kept = result.losses
    if lost is not None and kept is not None:
        lines.append(
            f"Loss after these steps: {lost:.4g} without, {kept:.4g} with the change. Unless the "
            "program sets a seed, the loss differs from run to run."
        )
    if change.caution:
        lines.append(change.caution.format(change.value))
    return "\n".join(lines)


def _usual(times_ps: Sequence[int]) -> str:
    usual = round(median(times_ps))
    spread = f"{_signed(min(times_ps))} to {_signed(max(times_ps))}"
    return f"{_signed(usual):>8}   {spread}" if len(times_ps) > 1 else f"{_signed(usual):>8}"


def _signed(ps: int) -> str:
    return seconds(ps) if ps >= 0 else f"−{seconds(-ps)}"


def judged(result: Measured, prediction: Prediction | None) -> str:
    saved_ps = result.usual_saving_ps
    if not result.is_clear:
        return "No clear difference: the pairs of runs disagree about which is faster."
    if abs(saved_ps) < HARDLY * median(result.without_ps):
        return "There is hardly any difference."
    if saved_ps < 0:
        return "The change makes the run slower."
    if prediction is None:
        return "The change helps."
    if prediction.low_ps <= saved_ps <= prediction.high_ps:
        return "The change helps, as predicted."
    if min(result.saved_ps) <= prediction.high_ps and max(result.saved_ps) >= prediction.low_ps:
        return "The change helps, about as predicted; the pairs differ too much to say more."
    if saved_ps < prediction.low_ps:
        return "The change helps, but by less than predicted."
    return "The change helps, and by more than predicted."


def as_data(
    finding: str, change: str, result: Measured, prediction: Prediction | None
) -> dict[str, object]:
    ranged = prediction and {"low": prediction.low_ps, "high": prediction.high_ps}
    return {
        "finding": finding,
        "change": change,
        "steps": result.steps,
        "without_ps": list(result.without_ps),
        "with_ps": list(result.with_ps),
        "saved_ps": list(result.saved_ps),
        "predicted_ps": ranged,
        "losses": list(result.losses),
        "verdict": judged(result, prediction),
    }
