"""When to profile. This is pure logic: it is told what happens and when, and says whether to open
or close a window.

A profile costs time (to record it, and on a core while it is saved) and, until it is saved, memory.
The cost of a step is learned from the windows so far. Slow steps have few events per second and are
profiled nearly all the time, fast ones in samples.
"""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass

from stall_analyzer.captures.capture_format import WindowReason

MB = 1 << 20

# A window is complete after this many steps. Fewer are enough if they are slow, or if the epoch is
# so short that the budget does not pay for more: the fewest are enough for a mean. But if Python
# prepares the next batches in other threads, it may keep the steps from the interpreter. That is
# found by comparing twenty steps of the same form, and the first few have a different form.
WHOLE_STEPS, STEPS_TO_COMPARE, FEWEST_STEPS = 40, 24, 10
# The cost of recording and saving a step of a small model, with 700 events. For the first window,
# which costs more than all others, nothing else is known.
FIRST_STEPS_COST_S = 0.003
WHOLE_SLOW_STEPS, WHOLE_SECONDS = 3, 5.0
MOST_WINDOW_BYTES = 32 * MB  # several times as much in memory until it is saved
# For all windows together. Half may be used at once; the rest is spread over the epoch.
MOST_BYTES = 256 * MB
MOST_WINDOWS = 24  # each is a session in TensorBoard's list
AT_ONCE = 0.5
LATER_BY = 1.25  # if the length of the epoch is not known, windows get further and further apart
# For a training that ends before this, the first window, the most expensive one, is enough.
SAMPLED_AFTER_S = 5.0
LOOK_EACH_S = 0.05  # how often to check for budget for another window: not after each fast step
MOST_RECORDING_TO_SAVING = 3.0  # noise may make recording look more expensive than it was
# A slow step takes this many times the median, and long enough to matter.
SLOW_TIMES, SLOW_SECONDS, STEPS_FOR_MEDIAN = 5.0, 1.0, 8
MOST_SLOW_WINDOWS = 3
MOST_HANG_WINDOWS = 3  # a training that stalls every hour should not fill the disk
SLOW_WINDOW_STEPS, SLOW_WINDOW_SECONDS = 5, 10.0
RECENT_STEPS = 64


@dataclass
class _OpenWindow:
    reason: str
    at_s: float
    steps: int = 0
    first_end_s: float = 0.0  # when its first step ended: tracing is over by then


class WindowPlan:
    """For one process, over all its fits. `budget` is the share of time that profiling may cost."""

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self._open: _OpenWindow | None = None
        self._being_saved: _OpenWindow | None = None
        # About the windows so far:
        self._windows = 0
        self._bytes = 0
        self._profiled_steps = 0
        self._saving_s = 0.0
        self._a_step = (0, 0.0)  # bytes, and seconds of saving, per step in the last window
        self._slow_windows = 0
        self._hang_windows = 0
        self._closed_s = 0.0
        self._look_at_s = 0.0
        # About the steps so far:
        self._plain_s: deque[float] = deque(maxlen=RECENT_STEPS)
        self._recorded_s: deque[float] = deque(maxlen=RECENT_STEPS)
        self._slow_step_seen = False
        # About this fit:
        self._began_s = 0.0
        self._earlier_s = 0.0  # time in earlier fits
        self._steps = 0
        self._steps_expected: int | None = None
        self._is_first_epoch = False
        self._has_validated = False
        self.python_runs_beside = False  # the input pipeline calls Python in other threads

    # ------------------------------------------------------------ what happens

    def fit_began(self, now_s: float, steps_in_epoch: int | None) -> None:
        self._began_s = self._look_at_s = now_s
        self._steps = 0
        self._steps_expected = steps_in_epoch
        self._is_first_epoch = True
        self._has_validated = False

    def first_epoch_ended(self) -> None:
        self._is_first_epoch = False

    def fit_ended(self, now_s: float) -> None:
        self._earlier_s += now_s - self._began_s
        self._is_first_epoch = False

    def opened(self, now_s: float, reason: str) -> None:
        self._open = _OpenWindow(reason, now_s)
        self._windows += 1
        self._slow_windows += reason == WindowReason.SLOW_STEP
        self._hang_windows += reason == WindowReason.HANG
        self._slow_step_seen = False

    def closed(self, now_s: float) -> None:
        self._being_saved, self._open = self._open, None
        self._closed_s = now_s

    def saved(self, size: int, seconds: float) -> None:
        """`seconds`: the time that saving took on a core."""
        window, self._being_saved = self._being_saved, None
        if window is not None:
            steps = max(window.steps, 1)
            self._a_step = size // steps, seconds / steps
            self._bytes += size
            self._profiled_steps += window.steps
            self._saving_s += seconds

    def step_ended(self, now_s: float, seconds: float) -> None:
        """A training step ended, `seconds` after the one before."""
        self._steps += 1
        window = self._open
        if window is not None:
            # The first step may have been traced, or may have begun before the window.
            if window.steps > 0:
                self._recorded_s.append(seconds)
            self.test_step_ended(now_s)
        elif self._is_slow(seconds):
            self._slow_step_seen = True
        elif self._being_saved is None and self._steps > 1:
            self._plain_s.append(seconds)

    def test_step_ended(self, now_s: float) -> None:
        """A validation step ended."""
        if self._open is not None:
            self._open.steps += 1
            if self._open.steps == 1:
                self._open.first_end_s = now_s

    # ------------------------------------------------------------ what to do

    def opens(self, now_s: float) -> str | None:
        """Why a window should be opened now."""
        if self._slow_step_seen and self._slow_windows < MOST_SLOW_WINDOWS:
            return WindowReason.SLOW_STEP
        if not self._is_first_epoch or now_s < self._look_at_s or not self._has_room():
            return None
        self._look_at_s = now_s + LOOK_EACH_S
        if self._windows > 0 and not self._can_afford(WHOLE_STEPS, now_s):
            return None
        if self._steps == 0:
            return WindowReason.START
        is_sampled = self._trained_s(now_s) >= SAMPLED_AFTER_S and self._is_its_turn(now_s)
        return WindowReason.SAMPLE if is_sampled else None

    def opens_for_validation(self) -> bool:
        """For the first one, whose graph is traced, too. It is worth exceeding the budget."""
        is_first = self._is_first_epoch and not self._has_validated
        self._has_validated = True
        return is_first and self._has_room()

    def opens_for_hang(self) -> bool:
        return self._hang_windows < MOST_HANG_WINDOWS

    def closes(self, now_s: float) -> bool:
        """Whether the open window should be closed now, at the end of a step."""
        window = self._open
        if window is None:
            return False
        if window.reason == WindowReason.SLOW_STEP:
            is_long = now_s - window.at_s >= SLOW_WINDOW_SECONDS
            return is_long or window.steps >= SLOW_WINDOW_STEPS
        is_long = now_s - window.first_end_s >= WHOLE_SECONDS
        is_whole = window.steps >= self._whole_steps(now_s)
        if not is_whole and not (is_long and window.steps >= WHOLE_SLOW_STEPS):
            return False
        bytes_a_step, _ = self._a_step
        return (
            bytes_a_step == 0  # nothing was saved yet: learn what it costs
            or window.steps * bytes_a_step >= MOST_WINDOW_BYTES
            or not self._is_first_epoch
            or not self._can_afford(window.steps, now_s)
        )

    # ------------------------------------------------------------ what it costs

    def _has_room(self) -> bool:
        return self._bytes < MOST_BYTES and self._windows < MOST_WINDOWS

    def _can_afford(self, more_steps: int, now_s: float) -> bool:
        _, saving_a_step_s = self._a_step
        recording_s = self._recording_a_step_s()
        spent_s = self._profiled_steps * recording_s + self._saving_s
        next_s = more_steps * (recording_s + saving_a_step_s)
        return spent_s + next_s <= self.budget * self._trained_s(now_s)

    def _whole_steps(self, now_s: float) -> int:
        """When the open window is complete. Only the first one may be too expensive: others are
        opened only if they can be afforded."""
        if self._windows > 1 or self._steps_expected is None or not self._recorded_s:
            return WHOLE_STEPS
        steps_left = self._steps_expected - self._steps
        recorded_s = min(self._recorded_s)  # the first steps take longer than later ones
        plain_s = max(recorded_s - FIRST_STEPS_COST_S / 2, recorded_s / 2)  # half of it is saving
        epoch_s = self._trained_s(now_s) + steps_left * plain_s
        paid_for = int(self.budget * epoch_s / FIRST_STEPS_COST_S)
        fewest = STEPS_TO_COMPARE if self.python_runs_beside else FEWEST_STEPS
        return min(max(paid_for, fewest), WHOLE_STEPS)

    def _trained_s(self, now_s: float) -> float:
        return self._earlier_s + now_s - self._began_s

    def _recording_a_step_s(self) -> float:
        """How much longer a step takes while it is recorded: at least as long as saving it, since
        the other cores are kept busy, too. Measurements confirm this."""
        _, saving_s = self._a_step
        if min(len(self._plain_s), len(self._recorded_s)) < STEPS_FOR_MEDIAN:
            return saving_s
        longer_s = statistics.median(self._recorded_s) - statistics.median(self._plain_s)
        return min(max(longer_s, saving_s), MOST_RECORDING_TO_SAVING * saving_s)

    def _is_its_turn(self, now_s: float) -> bool:
        """Whether there is enough room left for another window at this point in the epoch."""
        used = max(self._bytes / MOST_BYTES, self._windows / MOST_WINDOWS)
        if used < AT_ONCE:
            return True
        if self._steps_expected:
            return used < AT_ONCE + (1 - AT_ONCE) * self._steps / self._steps_expected
        return now_s - self._began_s >= LATER_BY * (self._closed_s - self._began_s)

    def _is_slow(self, seconds: float) -> bool:
        if len(self._plain_s) < STEPS_FOR_MEDIAN or seconds < SLOW_SECONDS:
            return False
        return seconds > SLOW_TIMES * statistics.median(self._plain_s)
