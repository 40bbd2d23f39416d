"""Which steps are measured: the first ones, and then one in sixteen or fewer.

However short the steps are, some twenty of the first million are measured: data may change.
"""

from __future__ import annotations

from tb_stall_plugin.capture.process.pulse import STEPS_FOR_MEDIAN

EVERY = 16
# Of the training thread's time, at the most: fast steps are measured less often.
SHARE_OF_TIME = 0.005
LEAST_STEP_S = 1e-6  # no clock is finer
REST_S = 0.05  # short steps are left alone for so long: to look at what took how long costs, too


class MeasuredSteps:
    """Of one optimizer, over all its fits."""

    def __init__(self) -> None:
        self._steps = 0
        self.is_due = True  # the step under way, or the next one
        self._not_before = 0  # so many steps have ended

    def steps_ended(self, count: int) -> tuple[bool, bool]:
        """Whether the step that has ended last was due, and whether the next one is. The others of
        the `count` were not, as `rest` has said.

        The last of each period is, because gradients that are accumulated over 2, 4, 8 or 16 steps
        are applied then.
        """
        self._steps += count
        was_due = self.is_due
        is_last = (self._steps + 1) % EVERY == 0
        self.is_due = self._steps < EVERY or (is_last and self._is_affordable_after(self._steps))
        return was_due, self.is_due

    def rest(self, step_s: float = REST_S) -> int:
        """So many steps, of this length, end until there is something to be said, by
        `steps_ended`."""
        if self.is_due:
            return 1
        rest = EVERY - (self._steps + 1) % EVERY
        most = min(REST_S / max(step_s, LEAST_STEP_S), STEPS_FOR_MEDIAN)  # no more are remembered
        while rest + EVERY <= most and not self._is_affordable_after(self._steps + rest):
            rest += EVERY
        return rest

    def _is_affordable_after(self, steps: int) -> bool:
        return steps >= self._not_before or _is_power_of_two(steps + 1)

    def took(self, seconds: float, step_s: float) -> None:
        """To measure a step, where an ordinary one takes `step_s`."""
        steps = seconds / max(step_s, LEAST_STEP_S)
        self._not_before = self._steps + round(steps / SHARE_OF_TIME)


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0
