"""How long nothing may finish before it counts as a hang, learned from what has finished."""

from __future__ import annotations

import time

from tb_stall_plugin.capture.process.pulse import (
    LEAST_LIMIT_S,
    LIMIT_BEFORE_FIRST_STEP_S,
    NS,
    STEPS_FOR_MEDIAN,
    Pulse,
)


class MovedClock:
    def __init__(self) -> None:
        self.ns = 10**15

    def __call__(self) -> int:
        return self.ns

    def seconds(self) -> float:
        return self.ns / NS

    def wait(self, seconds: float) -> None:
        self.ns += round(seconds * NS)


def training(clock: MovedClock, step_s: float, steps: int) -> Pulse:
    pulse = Pulse(clock)
    pulse.begin("train_batch")
    for _ in range(steps):
        clock.wait(step_s)
        pulse.step_done()
    return pulse


def test_before_the_first_step_there_is_time_to_trace() -> None:
    assert Pulse(MovedClock()).limit_s() == LIMIT_BEFORE_FIRST_STEP_S


def test_short_steps_have_the_least_limit() -> None:
    assert training(MovedClock(), 0.01, 200).limit_s() == LEAST_LIMIT_S


def test_long_steps_have_twenty_times_their_median() -> None:
    assert training(MovedClock(), 10.0, 5).limit_s() == 200.0


def test_one_long_step_may_come_again() -> None:
    clock = MovedClock()
    pulse = training(clock, 0.1, 200)
    clock.wait(100.0)  # for example, a checkpoint
    pulse.step_done()
    assert pulse.limit_s() == 300.0


def test_the_median_follows_the_last_steps() -> None:
    clock = MovedClock()
    pulse = training(clock, 50.0, 10)
    for _ in range(STEPS_FOR_MEDIAN):
        clock.wait(1.0)
        pulse.step_done()
    assert pulse.limit_s() == 150.0  # three times the longest; the median has forgotten it


def test_time_between_two_fits_teaches_nothing() -> None:
    clock = MovedClock()
    pulse = Pulse(clock)
    clock.wait(10_000.0)  # data is prepared, before fit
    pulse.begin("train_batch")
    clock.wait(0.1)
    pulse.step_done()
    pulse.begin("idle")
    clock.wait(10_000.0)
    pulse.begin("train_batch")
    clock.wait(0.1)
    pulse.step_done()
    assert pulse.limit_s() == LEAST_LIMIT_S


def test_a_validation_batch_is_a_sign_of_life_but_not_a_step() -> None:
    clock = MovedClock()
    pulse = training(clock, 0.1, 3)
    pulse.begin("validation")
    clock.wait(40.0)
    assert pulse.idle_s() == 40.0
    pulse.alive()
    assert pulse.idle_s() == 0.0 and pulse.steps_done == 3


def test_a_step_costs_the_training_almost_nothing() -> None:
    pulse = Pulse()
    took_s = []
    for _ in range(100):
        begin_s = time.thread_time()  # excludes other programs; the least of many counts
        for _ in range(100):
            pulse.begin("train_batch")
            pulse.step_done()
        took_s.append((time.thread_time() - begin_s) / 100)
    assert min(took_s) < 50e-6  # about 1 us
