"""Which steps are measured: the first sixteen, and then at most one in sixteen.

However short the steps are, at least some twenty of the first million are measured, because the
data may change.
"""

from __future__ import annotations

from tb_stall_plugin.capture.process.pulse import STEPS_FOR_MEDIAN

EVERY = 16
# The share of the training thread's time that measuring may take: fast steps are measured less
# often.
SHARE_OF_TIME = 0.002
LEAST_STEP_S = 1e-6  # shorter times cannot be measured
REST_S = 0.1  # short steps are left alone for this long: looking at their times costs time, too


class MeasuredSteps:
    """For one optimizer, over all its fits."""

    def __init__(self) -> None:
        self._steps = 0
        self.is_due = True  # the current step, or the next one
        self._not_before = 0  # no step is measured until this many have ended
        self._preparing_s = 0.0  # time spent on preparing for the next measured step
        self._was_due = False

    def steps_ended(self, count: int) -> tuple[bool, bool]:
        """Whether the step that ended last was due, and whether the next one is. The other steps of
        the `count` were not due, as `rest` said.

        The last step of each sixteen is due, because gradients that are accumulated over 2, 4, 8 or
        16 steps are applied then.
        """
        self._steps += count
        self._was_due, self.is_due = self.is_due, self._is_due_after(self._steps)
        return self._was_due, self.is_due

    def rest(self, step_s: float = REST_S) -> int:
        """How many steps of this length may end before `steps_ended` must be called."""
        if self.is_due:
            return 1
        # No more than STEPS_FOR_MEDIAN are remembered.
        most = max(EVERY, min(round(REST_S / max(step_s, LEAST_STEP_S)), STEPS_FOR_MEDIAN))
        return next((n for n in range(1, most) if self._is_due_after(self._steps + n)), most)

    def _is_due_after(self, steps: int) -> bool:
        is_last = (steps + 1) % EVERY == 0
        is_affordable = steps >= self._not_before or _is_power_of_two(steps + 1)
        return steps < EVERY or (is_last and is_affordable)

    def took(self, seconds: float, step_s: float) -> None:
        """How long it took to measure a step, or to prepare for it, if an ordinary step takes
        `step_s`."""
        steps = (self._preparing_s + seconds) / max(step_s, LEAST_STEP_S)
        self._not_before = self._steps + round(steps / SHARE_OF_TIME)
        self._preparing_s = 0.0 if self._was_due else seconds


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0
