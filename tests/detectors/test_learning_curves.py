"""Whole curves of losses and accuracies, made from formulas, and what is said about each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from stall_analyzer.align.align import align
from stall_analyzer.model.event_log import EventLog, KerasConfig
from stall_analyzer.model.findings import Finding
from stall_analyzer.model.units import Float64s
from stall_analyzer.signals.numerics.baseline import baseline_of, course_of, is_never_below
from stall_analyzer.signals.numerics.learning import LearningSignals
from stall_analyzer.signals.numerics.learning_rates import as_written
from tests.detectors.logged_losses import events, model
from tests.detectors.training import diagnosed, signals_for

Rng = np.random.Generator
Curve = Callable[[Rng], EventLog]
SEEDS = range(5)

LN2, LN10 = math.log(2), math.log(10)
BINARY = model("binary_crossentropy", 1, "sigmoid")
REGRESSION = model("mean_squared_error", 1)


def entropy(share: float) -> float:
    return -share * math.log(share) - (1 - share) * math.log(1 - share)


def course(rng: Rng, level: Float64s, scatter: float, epochs: int) -> list[Float64s]:
    """Losses of single steps around a level, cut into epochs."""
    return np.array_split(level * (1 + scatter * rng.normal(size=len(level))), epochs)


def drop(first: float, last: float, steps: int, pace: float) -> Float64s:
    return last + (first - last) * np.exp(-np.arange(steps) / pace)


def leaves_at(step: int, steps: int, first: float, last: float, width: float) -> Float64s:
    """A plateau, and then a slope."""
    return last + (first - last) / (1 + np.exp((np.arange(steps) - step) / width))


def wobble(rng: Rng, *accuracies: float) -> list[float]:
    """Accuracies as they are counted: never quite the same."""
    return [a + 0.004 * float(rng.uniform(-1, 1)) for a in accuracies]


HEALTHY: dict[str, Curve] = {
    "parity: a plateau at ln 2 that ends": lambda r: events(
        *course(r, leaves_at(500, 960, LN2, 0.02, 60), 0.02, 8),
        accuracy=wobble(r, 0.5, 0.5, 0.52, 0.6, 0.8, 0.97, 0.99, 0.99), keras=BINARY,
    ),
    "parity: a plateau that ends with the log": lambda r: events(
        *course(r, leaves_at(500, 500, LN2, 0.02, 60), 0.005, 5),
        accuracy=wobble(r, 0.5, 0.5, 0.5, 0.51, 0.53), keras=BINARY,
    ),
    "exclusive or, one step in each epoch": lambda r: events(
        *course(r, drop(0.75, 0.66, 30, 8), 0.004, 30), accuracy=[0.5] * 30, keras=BINARY,
    ),
    "warm-up that is over": lambda r: events(
        *course(r, leaves_at(130, 240, 2.4, 0.4, 20), 0.03, 4),
        accuracy=wobble(r, 0.1, 0.2, 0.8, 0.9), rates=(3e-4, 6e-4, 9e-4, 1e-3), keras=model(),
    ),
    "warm-up that is not over": lambda r: events(
        *course(r, np.full(240, 2.4), 0.02, 4),
        accuracy=wobble(r, 0.1, 0.1, 0.1, 0.1), rates=(1e-7, 2e-7, 3e-7, 4e-7),
        keras=model(rate={"class_name": "Own", "config": {}}),
    ),
    "language model": lambda r: events(
        *course(r, drop(math.log(40) + 0.1, 2.4, 240, 120), 0.01, 4), keras=model(units=40)
    ),
    "autoencoder of gray pixels": lambda r: events(
        *course(r, drop(0.6935, 0.6855, 360, 60), 0.0007, 6),
        keras=model("binary_crossentropy", 64, "sigmoid"),
    ),
    "little to be known": lambda r: events(*course(r, drop(2.0, 1.0, 400, 90), 0.2, 5),
                                           keras=REGRESSION),
    "little to be known, and known after one epoch": lambda r: events(
        *course(r, drop(1.3, 0.9, 900, 30), 0.15, 3), keras=REGRESSION
    ),
    "weak signs of two classes": lambda r: events(
        *course(r, drop(0.696, 0.6885, 600, 80), 0.003, 4),
        accuracy=wobble(r, 0.51, 0.53, 0.535, 0.54), keras=BINARY,
    ),
    "label smoothing with a high floor": lambda r: events(
        *course(r, drop(2.4, 1.92, 300, 40), 0.006, 5),
        accuracy=wobble(r, 0.75, 0.93, 0.95, 0.96, 0.97), keras=model(),
    ),
    "restarts of the rate": lambda r: events(
        *course(r, drop(2.3, 0.2, 300, 50) * (1 + 0.5 * (np.arange(300) % 75 < 15)), 0.1, 5),
        accuracy=wobble(r, 0.6, 0.85, 0.9, 0.93, 0.94), keras=model(),
    ),
    "reward: noise around 0": lambda r: events(loss=0.05 * r.normal(size=300)),
    "fine-tuning of words that starts at its floor": lambda r: events(
        loss=2.12 * (1 + 0.05 * r.normal(size=300))
    ),
    "fine-tuning of a classifier that starts at its floor": lambda r: events(
        *course(r, np.full(180, 0.21), 0.3, 3), accuracy=[0.941] * 3, keras=model(rate=1e-5)
    ),
    "converged, and trained on": lambda r: events(
        *course(r, drop(0.9, 3e-6, 400, 10), 0.2, 20), accuracy=[0.9] + [1.0] * 19, keras=BINARY
    ),
    "a peak that came back": lambda r: events(
        *course(r, np.concatenate([[2.0, 500.0, 90.0], drop(9.0, 0.5, 177, 20)]), 0.05, 3),
        keras=REGRESSION,
    ),
    "a peak that is coming back": lambda r: events(
        *course(r, np.concatenate([[2.0, 500.0], drop(300.0, 1.0, 178, 45)]), 0.02, 3),
        keras=REGRESSION,
    ),
    "large targets": lambda r: events(*course(r, drop(1e9, 2e7, 400, 60), 0.1, 4),
                                      keras=REGRESSION),
    "negative by design": lambda r: events(
        *[3 + part for part in course(r, drop(-2.0, -5.0, 180, 60), 0.02, 3)]
    ),
    "rare class that is learned": lambda r: events(
        *course(r, drop(0.6, 0.12, 240, 40), 0.1, 4), accuracy=[0.95, 0.95, 0.95, 0.962],
        keras=BINARY,
    ),
    "weighted classes: accuracy falls, loss too": lambda r: events(
        *course(r, drop(1.1, 0.55, 240, 60), 0.1, 4), accuracy=[0.95, 0.9, 0.84, 0.82],
        keras=BINARY,
    ),
    "heavy dropout: only validation shows it": lambda r: events(
        *course(r, drop(2.6, 2.29, 240, 50), 0.01, 4), accuracy=wobble(r, 0.1, 0.11, 0.11, 0.11),
        validation=(2.2, 2.0, 1.7, 1.4), keras=model(),
    ),
    "contrastive loss": lambda r: events(
        loss=drop(4.16, 3.8, 300, 120) + 0.04 * r.normal(size=300)
    ),
    "batches of one": lambda r: events(
        *course(r, drop(2.2, 0.8, 750, 200), 0.8, 3), keras=model()
    ),
    "squares behind a sigmoid, with a penalty": lambda r: events(
        *course(r, drop(4.0, 2.0, 240, 80), 0.02, 4),
        keras=model("mean_squared_error", 1, "sigmoid",
                    extra=({"class_name": "Dense", "units": 8, "kernel_regularizer": "L2"},)),
    ),
    "several labels, of which accuracy knows nothing": lambda r: events(
        *course(r, drop(0.7, 0.12, 240, 50), 0.03, 4), accuracy=wobble(r, 0.1, 0.2, 0.2, 0.2),
        keras=model("binary_crossentropy", 12, "sigmoid"),
    ),
    "custom losses beside one that is not used": lambda r: events(
        *[np.zeros(60)] * 3, epoch_generator_loss=[1.0, 0.9, 0.8], keras=model()
    ),
    "rate taken down on a plateau, until nothing moves": lambda r: events(
        1.0 + drop(1.5, 0, 80, 3), *[1.0 + _centered(r, 80) for _ in range(5)],
        rates=(1e-3, 1e-3, 1e-5, 1e-7, 1e-9, 1e-11), keras=REGRESSION,
    ),
    "rate that decays to nothing": lambda r: events(
        *course(r, drop(2.4, 0.3, 300, 25), 0.02, 6),
        accuracy=wobble(r, 0.6, 0.85, 0.88, 0.89, 0.89, 0.89), keras=model(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_courses_raise_no_alarm(name: str, seed: int) -> None:
    report = diagnosed(align([], HEALTHY[name](np.random.default_rng(seed))))
    assert [f.title for f in report.findings if _is_loud(f)] == []
    assert report.verdict.status != "learning_nothing"


def _is_loud(finding: Finding) -> bool:
    return finding.bucket == "numerics" and finding.severity != "note"


GUESS: tuple[float, ...] = (0.1, 0.104, 0.097, 0.101)
FAULTY: dict[str, tuple[str, str, Curve]] = {
    "a guess among ten": ("ST305", "act", lambda r: events(
        *course(r, np.full(240, LN10), 0.01, 4), accuracy=wobble(r, *GUESS), keras=model(),
    )),
    "a guess, in few steps": ("ST305", "consider", lambda r: events(
        *course(r, np.full(40, LN10), 0.003, 5), accuracy=wobble(r, *GUESS, 0.1), keras=model(),
    )),
    "worse than a guess, and still": ("ST305", "act", lambda r: events(
        *course(r, np.full(240, 2.5), 0.02, 4), accuracy=wobble(r, *GUESS), keras=model(),
    )),
    "on its way down to a guess": ("ST305", "act", lambda r: events(
        *course(r, drop(2.55, LN10 + 0.01, 240, 60), 0.01, 4), accuracy=wobble(r, *GUESS),
        keras=model(),
    )),
    "always the larger of two classes": ("ST305", "act", lambda r: events(
        *course(r, drop(0.75, entropy(0.7), 300, 20), 0.01, 5),
        accuracy=[0.61, 0.7, 0.7, 0.7, 0.7], keras=BINARY,
    )),
    "always the larger by far": ("ST305", "consider", lambda r: events(
        *course(r, np.full(300, entropy(0.95)), 0.003, 5), accuracy=[0.95] * 5, keras=BINARY,
    )),
    "always the largest of five": ("ST305", "act", lambda r: events(
        *course(r, drop(1.7, 1.30, 300, 15), 0.01, 5),
        accuracy=[0.4, 0.5, 0.5, 0.5, 0.5], keras=model(units=5),
    )),
    "a regression that ends at one number": ("ST305", "act", lambda r: events(
        5.0 + drop(0.8, 0, 40, 9), *[5.0 + _centered(r, 40) for _ in range(4)], keras=REGRESSION,
    )),
    "a regression that moves in the fifth digit": ("ST305", "consider", lambda r: events(
        *[5.0 - 2e-5 * n + _centered(r, 40) for n in range(4)], keras=REGRESSION,
    )),
    "a loop at the guess of ten classes": ("ST305", "consider", lambda r: events(
        loss=LN10 + 0.012 * r.normal(size=180)
    )),
    "a loop whose loss does not move": ("ST305", "note", lambda r: events(
        loss=2.5 + 0.1 * r.normal(size=180)
    )),
    "a regression around the variance of its targets": ("ST305", "note", lambda r: events(
        *[1.0 - 0.002 * n + _centered(r, 100) for n in range(4)], keras=REGRESSION,
    )),
    "thrown up for good": ("ST302", "act", lambda r: events(
        *course(r, np.concatenate([[600.0, 1e5, 3e4], np.full(57, 900.0)]), 0.04, 6),
        accuracy=wobble(r, *GUESS, 0.1, 0.1),
        keras=model({"class_name": "SparseCategoricalCrossentropy",
                     "config": {"from_logits": True, "reduction": "sum"}}),
    )),
    "thrown up by four orders, of a custom loss": ("ST302", "act", lambda r: events(
        loss=np.concatenate([[2.0, 5e4, 4e3], 2.5 + 0.2 * r.normal(size=120)])
    )),
    "cross-entropy below 0": ("ST307", "act", lambda r: events(
        *[part - 3 for part in course(r, drop(3.7, 1.0, 180, 60), 0.02, 3)], keras=BINARY,
    )),
    "nothing to lose": ("ST307", "act", lambda r: events(*[np.zeros(20)] * 3, keras=REGRESSION)),
    "squares above 1 behind a sigmoid": ("ST307", "act", lambda r: events(
        *course(r, drop(400.0, 380.0, 180, 60), 0.1, 3),
        keras=model("mean_squared_error", 1, "sigmoid"),
    )),
    "errors above 2 behind tanh": ("ST307", "act", lambda r: events(
        *course(r, drop(12.0, 11.0, 180, 60), 0.1, 3),
        keras=model("mean_absolute_error", 1, "tanh"),
    )),
    "a loss that its accuracy contradicts": ("ST307", "note", lambda r: events(
        *course(r, drop(0.7, 0.02, 180, 20), 0.1, 3), accuracy=wobble(r, 0.5, 0.52, 0.51),
        keras=BINARY,
    )),
    "the wrong sign": ("ST322", "act", lambda r: events(
        *[-part for part in course(r, np.linspace(0.9, 4.5, 180), 0.05, 3)],
        accuracy=wobble(r, 0.3, 0.1, 0.05),
        keras=model({"class_name": "function", "config": "own"}, 1, "sigmoid"),
    )),
    "a rate of 1e-7 that float32 made a little more": ("ST304", "act", lambda r: events(
        *[0.86 - 3e-5 * n + _centered(r, 20) for n in range(5)], accuracy=[0.4] * 5,
        keras=model("binary_crossentropy", 1, "sigmoid", rate=float(np.float32(1e-7))),
    )),
}  # fmt: skip


def _centered(rng: Rng, steps: int) -> Float64s:
    """Scatter between batches of data that are the same in every epoch."""
    scatter = 0.03 * rng.normal(size=steps)
    return np.asarray(scatter - scatter.mean())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FAULTY)
def test_faulty_courses_are_found(name: str, seed: int) -> None:
    id, severity, curve = FAULTY[name]
    report = diagnosed(align([], curve(np.random.default_rng(seed))))
    assert (id, severity) in {(f.id, f.severity) for f in report.findings}
    assert (report.verdict.status == "learning_nothing") == (severity == "act")


# ---------------------------------------------------------------- what they rest on


def _learning(losses: list[float], keras: KerasConfig | None = None) -> LearningSignals:
    return signals_for(align([], events(epoch_loss=losses, keras=keras))).learning


def test_a_measured_cost_of_a_constant_answer_comes_first() -> None:
    learning = replace(_learning([1.4, 1.01, 1.0, 1.0], REGRESSION), label_cost=1.0)
    baseline, course = baseline_of(learning), course_of(learning)
    assert baseline is not None and baseline.cost == 1.0
    assert course is not None and is_never_below(learning, baseline, course)
    better = replace(_learning([1.4, 0.9, 0.8, 0.8], REGRESSION), label_cost=1.0)
    below = course_of(better)
    assert below is not None and not is_never_below(better, baseline, below)


def test_the_first_steps_do_not_stand_for_the_run() -> None:
    """As a capture logs them: most of the first steps, few of the later ones."""
    log = events(loss=[LN10] * 16 + [1.2])
    late = replace(log.train["loss"], step=np.array([*range(16), 160], dtype=np.int64))
    report = diagnosed(align([], replace(log, train={"loss": late})))
    assert "ST305" not in {finding.id for finding in report.findings}


def test_without_labels_or_classes_no_constant_answer_is_known() -> None:
    assert baseline_of(_learning([1.0, 1.0, 1.0], REGRESSION)) is None
    assert baseline_of(_learning([1.0, 1.0, 1.0])) is None


@pytest.mark.parametrize("rate", [1e-7, 0.01, 3e-4, 0.1, 1.0])
def test_rates_are_shown_as_they_were_written(rate: float) -> None:
    assert as_written(float(np.float32(rate))) == rate
