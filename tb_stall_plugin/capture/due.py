"""Which steps are measured: the first ones, and then one in sixteen or fewer."""

from __future__ import annotations

EVERY = 16
# Of the training thread's time, at the most: fast steps are measured less often.
SHARE_OF_TIME = 0.005


class Due:
    """Of one optimizer, over all its fits."""

    def __init__(self) -> None:
        self._steps = 0
        self.is_due = True  # the step under way, or the next one
        self._not_before_s = 0.0

    def steps_ended(self, count: int, now_s: float) -> tuple[bool, bool]:
        """Whether the step that has ended last was due, and whether the next one is. The others of
        the `count` were not, as `rest` has said.

        The last of each period is, because gradients that are accumulated over 2, 4, 8 or 16 steps
        are applied then.
        """
        self._steps += count
        was_due = self.is_due
        in_time = (self._steps + 1) % EVERY == 0 and now_s >= self._not_before_s
        self.is_due = self._steps < EVERY or in_time
        return was_due, self.is_due

    def rest(self) -> int:
        """So many steps end until there is something to be said, by `steps_ended`."""
        return 1 if self.is_due else EVERY - (self._steps + 1) % EVERY

    def took(self, seconds: float, now_s: float) -> None:
        """To measure a step."""
        self._not_before_s = now_s + seconds / SHARE_OF_TIME
