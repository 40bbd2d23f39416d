"""When windows are opened: simulates trainings without a profiler.

The simulated costs are those that were measured: recording takes as long as saving.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tb_stall_plugin.capture.training import window_plan
from tb_stall_plugin.capture.training.window_plan import MB, WindowPlan

BUDGET = 0.05


@dataclass
class PlannedTraining:
    """Steps of `step_s` with `event_bytes` of events each, which take 0.1 s per megabyte to
    save."""

    step_s: float
    event_bytes: int
    plan: WindowPlan = field(default_factory=lambda: WindowPlan(BUDGET))
    now_s: float = 1000.0
    first_step_s: float = 1.0  # with tracing
    slow_steps: dict[int, float] = field(default_factory=dict)
    # The results:
    open_at: float | None = None
    steps_in_window: int = 0
    saving_until: float = 0.0
    saved_steps: int = 0
    reasons: list[str] = field(default_factory=list)
    opened_at_step: list[int] = field(default_factory=list)
    profiled: int = 0
    lost_s: float = 0.0
    bytes: int = 0
    steps: int = 0

    def fit(self, steps: int, expected: int | None = None) -> PlannedTraining:
        self.plan.fit_began(self.now_s, expected)
        self._open()
        for number in range(steps):
            seconds = self.slow_steps.get(number, self.step_s)
            seconds += self.first_step_s if number == 0 else 0.0
            if self.open_at is not None:
                extra = self.event_bytes / MB * 0.1
                seconds += extra
                self.lost_s += extra
                self.steps_in_window += 1
                self.profiled += 1
            self.now_s += seconds
            self.steps += 1
            self._finish_saving()
            self.plan.step_ended(self.now_s, seconds)
            if self.open_at is not None and self.plan.closes(self.now_s):
                self.close()
            elif self.open_at is None and self.saving_until == 0.0:
                self._open()
        return self

    def _open(self) -> None:
        reason = self.plan.opens(self.now_s)
        if reason is not None:
            self.reasons.append(reason)
            self.opened_at_step.append(self.steps)
            self.open_at, self.steps_in_window = self.now_s, 0
            self.plan.opened(self.now_s, reason)

    def close(self) -> None:
        self.plan.closed(self.now_s)
        self.open_at = None
        size = self.steps_in_window * self.event_bytes
        self.bytes += size
        self.largest = max(getattr(self, "largest", 0), size)
        saving_s = size / MB * 0.1
        self.lost_s += saving_s
        self.saving_until = self.now_s + saving_s
        self._saved = size, saving_s

    def _finish_saving(self) -> None:
        if self.saving_until and self.now_s >= self.saving_until:
            self.saving_until = 0.0
            self.plan.saved(*self._saved)


def test_the_first_window_is_open_before_the_first_step_and_holds_forty() -> None:
    training = PlannedTraining(step_s=0.0025, event_bytes=14_000).fit(41)
    assert training.reasons == ["start"]
    assert training.opened_at_step == [0]
    assert training.profiled == window_plan.WHOLE_STEPS


def test_the_first_window_has_as_many_steps_as_the_budget_pays_for() -> None:
    def profiled(steps: int) -> int:
        training = PlannedTraining(step_s=0.001, event_bytes=14_000, plan=WindowPlan(0.02))
        return training.fit(50, expected=steps).profiled

    assert profiled(steps=50) == window_plan.FEWEST_STEPS
    assert window_plan.FEWEST_STEPS < profiled(steps=2000) < window_plan.WHOLE_STEPS
    assert profiled(steps=9000) == window_plan.WHOLE_STEPS


def test_steps_beside_which_python_runs_are_profiled_until_they_can_be_compared() -> None:
    plan = WindowPlan(0.02)
    plan.python_runs_beside = True
    training = PlannedTraining(step_s=0.001, event_bytes=14_000, plan=plan)
    assert training.fit(50, expected=50).profiled == window_plan.STEPS_TO_COMPARE


def test_slow_steps_with_few_events_are_profiled_nearly_all_the_time() -> None:
    training = PlannedTraining(step_s=1.0, event_bytes=100_000).fit(300)
    assert training.profiled > 0.95 * training.steps


@pytest.mark.parametrize(("step_s", "event_bytes"), [(0.0025, 14_000), (0.006, 100_000)])
def test_fast_steps_are_sampled_within_the_budget(step_s: float, event_bytes: int) -> None:
    training = PlannedTraining(step_s, event_bytes).fit(20_000, expected=20_000)
    assert training.lost_s < 1.2 * BUDGET * training.steps * step_s
    assert len(training.reasons) > 5
    assert max(training.opened_at_step) > 0.7 * training.steps


def test_a_short_epoch_of_fast_steps_has_only_the_first_window() -> None:
    training = PlannedTraining(step_s=0.0025, event_bytes=14_000).fit(200)
    assert training.reasons == ["start"]


def test_a_training_of_a_few_seconds_has_only_the_first_window() -> None:
    steps = int((window_plan.SAMPLED_AFTER_S - 2.0) / 0.02)
    assert PlannedTraining(step_s=0.02, event_bytes=1000).fit(steps).reasons == ["start"]
    assert "sample" in PlannedTraining(step_s=0.02, event_bytes=1000).fit(2 * steps).reasons


def test_windows_stay_small_and_so_does_their_sum() -> None:
    training = PlannedTraining(step_s=1.0, event_bytes=2 * MB).fit(5000, expected=5000)
    assert training.largest <= 1.1 * window_plan.MOST_WINDOW_BYTES
    assert training.bytes <= window_plan.MOST_BYTES + window_plan.MOST_WINDOW_BYTES
    assert max(training.opened_at_step) > 0.8 * training.steps


def test_an_epoch_of_unknown_length_is_sampled_less_and_less_often() -> None:
    training = PlannedTraining(step_s=0.1, event_bytes=MB).fit(50_000)
    assert len(training.reasons) <= window_plan.MOST_WINDOWS
    assert max(training.opened_at_step) > 0.2 * training.steps


def test_after_the_first_epoch_only_slow_steps_are_profiled() -> None:
    training = PlannedTraining(step_s=0.1, event_bytes=1000).fit(100)
    training.plan.first_epoch_ended()
    if training.open_at is not None:
        training.close()
        training.now_s += 10
        training._finish_saving()
    seen = len(training.reasons)
    training.slow_steps = {50: 3.0}
    for number in range(100):
        seconds = training.slow_steps.get(number, 0.1)
        training.now_s += seconds
        training.plan.step_ended(training.now_s, seconds)
        if training.open_at is None:
            training._open()
    assert training.reasons[seen:] == ["slow_step"]


def test_no_more_than_three_slow_steps_are_profiled() -> None:
    slow = dict.fromkeys(range(100, 2000, 50), 2.0)
    training = PlannedTraining(step_s=0.1, event_bytes=1000, slow_steps=slow)
    training.plan.fit_began(training.now_s, None)
    training.plan.first_epoch_ended()
    training.fit(0)
    training.plan.first_epoch_ended()
    training.fit(2000)
    assert training.reasons.count("slow_step") <= window_plan.MOST_SLOW_WINDOWS


def test_no_more_than_three_hangs_are_profiled() -> None:
    plan = WindowPlan(BUDGET)
    hangs = 0
    while plan.opens_for_hang():
        plan.opened(1000.0, "hang")
        plan.closed(1005.0)
        hangs += 1
    assert hangs == 3


def test_only_the_first_validation_gets_its_own_window() -> None:
    training = PlannedTraining(step_s=0.0025, event_bytes=14_000).fit(200)
    assert training.plan.opens_for_validation()
    assert not training.plan.opens_for_validation()


def test_a_second_fit_is_profiled_from_its_beginning_if_there_is_budget_left() -> None:
    training = PlannedTraining(step_s=1.0, event_bytes=100_000).fit(100)
    training.close()
    training.now_s += 60
    training._finish_saving()
    training.plan.fit_ended(training.now_s)
    training.fit(30)
    assert training.reasons.count("start") == 2
