"""What the training is doing, and how long it may go without a sign of life."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable

from stall_analyzer.captures.capture_format import TrainingPhase

NS = 1_000_000_000

# Before the first step, nothing is known yet: tracing a large model, or the first batch of a
# shuffled dataset, may take minutes. Nor is anything known of what a program does after fit.
LIMIT_BEFORE_FIRST_STEP_S = 300.0
LEAST_LIMIT_S = 60.0
LONGEST_TIMES = 3  # checkpoints and validations come again, and may then take longer
MEDIAN_TIMES = 20
STEPS_FOR_MEDIAN = 128
NOT_TRAINING = (TrainingPhase.STARTUP, TrainingPhase.IDLE, TrainingPhase.EXIT)


class Pulse:
    """Written by the training thread, read by the watchdog.

    Plain attributes: a lock would cost more than all the rest, and no reader needs two to agree.
    """

    def __init__(self, clock_ns: Callable[[], int] = time.monotonic_ns, age_s: float = 0.0) -> None:
        """`age_s`: how long ago the program began, without any sign of life since."""
        self.clock_ns = clock_ns
        self.phase = TrainingPhase.STARTUP
        # How many steps have been counted, and when each step ended that has not been counted yet.
        self.ended: tuple[int, list[int]] = 0, []
        # When the last counted step ended or, before the first step, when training began.
        self.last_step_ns = clock_ns() - round(age_s * NS)
        self._last_sign_ns = self.last_step_ns
        self.longest_ns = 0  # between two signs of life, while training
        self.step_ns: deque[int] = deque(maxlen=STEPS_FOR_MEDIAN)
        # For each running fit, a function that ends its session if an exception has ended the fit,
        # and returns whether it did.
        self.fits: list[Callable[[], bool]] = []
        self.on_training: Callable[[], None] | None = None  # called once, when training begins

    def begin(self, phase: str) -> None:
        was_training = self.phase not in NOT_TRAINING
        self.alive()
        self.phase = phase
        if not was_training:
            self.step_begins_now()
            on_training = self.on_training
            if on_training is not None and phase not in NOT_TRAINING:
                self.on_training = None
                on_training()

    def step_begins_now(self) -> None:
        """The next step begins now. Otherwise, it would begin where the last one ended."""
        self.last_step_ns = self.last_sign_ns

    def was_left(self) -> bool:
        """A fit that an exception ends does not say so. Asked when nothing has happened for a
        while, and when the next fit begins. True if there was one, whose session is ended now."""
        answers = [fit_was_left() for fit_was_left in tuple(self.fits)]
        return any(answers)

    @property
    def steps_done(self) -> int:
        counted, ends_ns = self.ended
        return counted + len(ends_ns)

    @property
    def last_sign_ns(self) -> int:
        """When the last sign of life came: begin or alive was called, or a step ended."""
        _, ends_ns = self.ended
        return ends_ns[-1] if ends_ns else self._last_sign_ns

    def step_done(self) -> int:
        """Returns how long the step took."""
        _, ends_ns = self.ended
        ends_ns.append(self.clock_ns())
        self.count_steps()
        return self.step_ns[-1]

    def count_steps(self) -> None:
        """Does what is left to do for steps that have ended. There are many short ones, so it is
        done for several at once."""
        counted, ends_ns = self.ended
        for end_ns in ends_ns:
            self.step_ns.append(end_ns - self.last_step_ns)
            self._sign_of_life(end_ns)
            self.last_step_ns = end_ns
        self.ended = counted + len(ends_ns), []

    def last_steps_s(self, count: int) -> list[float]:
        """How long the last steps took, as far as they are remembered."""
        steps = list(self.step_ns)
        return [step_ns / NS for step_ns in steps[max(len(steps) - count, 0) :]]

    def alive(self) -> None:
        """Something else has finished, such as a validation batch."""
        self.count_steps()
        self._sign_of_life(self.clock_ns())

    def _sign_of_life(self, at_ns: int) -> None:
        gap_ns = at_ns - self._last_sign_ns
        if gap_ns > self.longest_ns and self.phase not in NOT_TRAINING:
            self.longest_ns = gap_ns
        self._last_sign_ns = at_ns

    def idle_s(self) -> float:
        return (self.clock_ns() - self.last_sign_ns) / NS

    def limit_s(self) -> float:
        """How long training may go without a sign of life, judging by what has been seen so far."""
        steps = tuple(self.step_ns)
        if not steps or self.phase in NOT_TRAINING:
            return LIMIT_BEFORE_FIRST_STEP_S
        learned_ns = max(LONGEST_TIMES * self.longest_ns, MEDIAN_TIMES * statistics.median(steps))
        return max(LEAST_LIMIT_S, learned_ns / NS)
