"""Which steps are measured: the first sixteen, and then one in sixteen or fewer.

However short the steps are, some twenty of the first million are measured: data may change.
"""

from __future__ import annotations

from tb_stall_plugin.capture.process.pulse import STEPS_FOR_MEDIAN

EVERY = 16
# Of the training thread's time, at the most: fast steps are measured less often.
SHARE_OF_TIME = 0.005
LEAST_STEP_S = 1e-6  # no clock is finer
REST_S = 0.1  # short steps are left alone for so long: to look at what took how long costs, too


class MeasuredSteps:
    """Of one optimizer, over all its fits."""

    def __init__(self) -> None:
        self._steps = 0
        self.is_due = True  # the step under way, or the next one
        self._not_before = 0  # so many steps have ended
        self._preparing_s = 0.0  # for the next one, where none was measured before it
        self._was_due = False

    def steps_ended(self, count: int) -> tuple[bool, bool]:
        """Whether the step that has ended last was due, and whether the next one is. The others of
        the `count` were not, as `rest` has said.

        The last of each period is, because gradients that are accumulated over 2, 4, 8 or 16 steps
        are applied then.
        """
        self._steps += count
        self._was_due, self.is_due = self.is_due, self._is_due_after(self._steps)
        return self._was_due, self.is_due

    def rest(self, step_s: float = REST_S) -> int:
        """So many steps, of this length, end until there is something to be said, by
        `steps_ended`."""
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
        """To measure a step, or to prepare for it, where an ordinary one takes `step_s`."""
        steps = (self._preparing_s + seconds) / max(step_s, LEAST_STEP_S)
        self._not_before = self._steps + round(steps / SHARE_OF_TIME)
        self._preparing_s = 0.0 if self._was_due else seconds


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0
