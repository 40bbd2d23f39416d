"""Can the model memorize a few examples? One that cannot will not learn the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from stall_analyzer.captures.capture_format import CheckFault, CheckName
from stall_analyzer.captures.capture_records import PreflightCheck
from tb_stall_plugin.capture.preflight.judged import counted, failed, not_checked, passed
from tb_stall_plugin.capture.preflight.trial import RATES, STEPS_OF_RATE, Look, Trial

# Shares of the loss of a constant answer, which ignores the inputs.
BY_HEART = 0.5  # below this, the examples are memorized
CLEARLY = 0.9  # below this, the inputs help
NOT_AT_ALL = 0.97  # above this, they do not: noise of dropout or of averages is smaller
STILL_FALLING = 0.01  # from the second third of the steps to the last: more steps might help
NO_SPREAD = 1e-6  # labels that differ by less are the same
CAREFUL_RATE = 3e-3  # if the loss becomes NaN only at higher rates, they may be to blame


class Overfitted:
    """Trains on a few examples, at several rates, within a given time."""

    def __init__(self, constant: float | None, least: float, first: Look, seconds: float) -> None:
        self._constant, self._least, self._first = constant, least, first
        self._until_s = time.perf_counter() + seconds
        self.runs: list[tuple[float, list[Look]]] = []

    def run(self, trial: Trial, begin_anew: Callable[[], None]) -> None:
        for number, rate in enumerate(RATES):
            part = (self._until_s - time.perf_counter()) / (len(RATES) - number)
            if part > 0:
                begin_anew()
                looks = trial.train(rate, time.perf_counter() + part, self._enough)
                self.runs.append((rate, looks))
                if self._best(looks) < self._enough:
                    break

    @property
    def looks(self) -> list[Look]:
        return [look for _, looks in self.runs for look in looks]

    @property
    def _enough(self) -> float:
        if self._constant:
            return self._at(BY_HEART)
        return self._first.data_loss - BY_HEART * abs(self._first.data_loss)

    def _at(self, share: float) -> float:
        assert self._constant is not None
        return self._least + share * (self._constant - self._least)

    @staticmethod
    def _best(looks: Sequence[Look]) -> float:
        """The mean of the last few, so that a lucky draw of dropout does not count."""
        losses = [look.data_loss for look in looks if np.isfinite(look.data_loss)]
        return float(np.mean(losses[-3:])) if losses else np.inf

    def judged(self, examples: int) -> PreflightCheck:
        broken = [rate for rate, looks in self.runs if not np.isfinite(looks[-1].loss)]
        if broken and min(broken) <= CAREFUL_RATE:
            text = f"the loss becomes NaN or infinite within {STEPS_OF_RATE} steps on one batch"
            return failed(CheckName.OVERFIT, text, CheckFault.NOT_FINITE)
        if not self.runs:
            return not_checked(CheckName.OVERFIT, "there was not enough time")
        if self._constant is not None and self._constant - self._least < NO_SPREAD:
            return not_checked(CheckName.OVERFIT, "all labels of these examples are the same")
        best_looks = min((looks for _, looks in self.runs), key=self._best)
        best = self._best(best_looks)
        text = (
            f"the loss of {counted(examples, 'example')} went from {self._first.data_loss:.4g} "
            f"to {best:.4g} in {counted(len(best_looks), 'step')}"
        )
        if self._constant is None:
            return self._by_its_fall(best, text)
        text += f"; the best constant answer has a loss of {self._constant:.4g}"
        if best < self._at(CLEARLY):
            return passed(CheckName.OVERFIT, text)
        if self._has_ended(best, best_looks):
            return failed(CheckName.OVERFIT, text, CheckFault.CANNOT_FIT)
        return not_checked(CheckName.OVERFIT, f"no clear result: {text}")

    def _by_its_fall(self, best: float, text: str) -> PreflightCheck:
        first = self._first.data_loss
        if first - best > (1 - CLEARLY) * abs(first):
            return passed(CheckName.OVERFIT, text)
        return not_checked(CheckName.OVERFIT, f"{text}; the minimum of this loss is not known")

    def _has_ended(self, best: float, looks: Sequence[Look]) -> bool:
        """Whether the loss stays high, no longer falls, and had all its steps at every rate."""
        assert self._constant is not None
        losses = [look.data_loss for look in looks]
        third = len(losses) // 3
        falls = np.mean(losses[third : 2 * third]) - np.mean(losses[2 * third :]) if third else 1
        had_time = [len(run) for _, run in self.runs] == [STEPS_OF_RATE] * len(RATES)
        is_flat = falls < STILL_FALLING * (self._constant - self._least)
        return bool(had_time and is_flat and best > self._at(NOT_AT_ALL))
