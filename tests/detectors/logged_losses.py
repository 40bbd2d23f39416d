"""Made-up logs of a training: its losses, and the model that TensorBoard's callback stores."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from stall_analyzer.align.align import align
from stall_analyzer.model.event_log import EventLog, KerasConfig, Series
from stall_analyzer.model.findings import Finding
from stall_analyzer.model.timeline import Timeline
from stall_analyzer.model.units import Float64s
from tests.detectors.training import signals_for

SECOND = 10**9
EPOCH_S = 100

Numbers: TypeAlias = Sequence[float] | npt.NDArray[np.floating[Any]]


def scalars(values: Numbers, start_s: float, every_s: float) -> Series:
    count = len(values)
    at = SECOND * (1_000_000 + start_s + every_s * np.arange(count))
    return Series(
        np.arange(count, dtype=np.int64), at.astype(np.int64), np.asarray(values, dtype=np.float64)
    )


def events(
    *epochs: Numbers,
    validation: Sequence[float] = (),
    accuracy: Sequence[float] = (),
    rates: Sequence[float] = (),
    keras: KerasConfig | None = None,
    **others: Numbers,
) -> EventLog:
    """The log of a run with these losses of single steps, as Keras writes them."""
    train: dict[str, Series] = {}
    with np.errstate(invalid="ignore"):
        means = [np.cumsum(epoch) / np.arange(1, len(epoch) + 1) for epoch in epochs]
    batches = [
        scalars(mean, n * EPOCH_S + 1, (EPOCH_S - 2) / len(mean)) for n, mean in enumerate(means)
    ]
    if batches:
        value = np.concatenate([s.value for s in batches]).astype(np.float32).astype(np.float64)
        wall = np.concatenate([s.wall_ns for s in batches])
        train["batch_loss"] = Series(np.arange(1, len(value) + 1), wall, value)
        train["epoch_loss"] = scalars([m[-1] for m in means], EPOCH_S, EPOCH_S)
    if len(accuracy):
        train["epoch_accuracy"] = scalars(accuracy, EPOCH_S, EPOCH_S)
    if len(rates):
        train["epoch_learning_rate"] = scalars(rates, EPOCH_S, EPOCH_S)
    train |= {tag: scalars(values, 1, 1) for tag, values in others.items()}
    held = {"epoch_loss": scalars(validation, EPOCH_S, EPOCH_S)} if len(validation) else {}
    return EventLog(train, held, keras, 1_000_000 * SECOND, None, None, 1)


def model(
    loss: Any = None,
    units: int = 10,
    activation: str = "linear",
    from_logits: bool = True,
    optimizer: str = "Adam",
    rate: Any = 1e-3,
    extra: Sequence[dict[str, object]] = (),
    **optimizer_config: object,
) -> KerasConfig:
    if loss is None:
        loss = "SparseCategoricalCrossentropy"
    if isinstance(loss, str) and loss[0].isupper():
        loss = {"class_name": loss, "config": {"from_logits": from_logits}}
    last = {"class_name": "Dense", "name": "head", "units": units, "activation": activation}
    return KerasConfig(
        wall_ns=1_000_000 * SECOND,
        model_class="Sequential",
        layers=(*extra, last),
        optimizer=optimizer,
        learning_rate=rate if isinstance(rate, float) else None,
        optimizer_config={"learning_rate": rate, **optimizer_config},
        compile_config={"loss": loss},
    )


def checked(detector: ModuleType, log: EventLog | Timeline) -> Finding | None:
    timeline = align([], log) if isinstance(log, EventLog) else log
    finding: Finding | None = detector.check(signals_for(timeline))
    return finding


def severity(detector: ModuleType, log: EventLog | Timeline) -> str | None:
    finding = checked(detector, log)
    return finding.severity if finding is not None else None


def noisy(level: float, scatter: float, steps: int = 60, seed: int = 1) -> Float64s:
    return level + scatter * np.random.default_rng(seed).normal(size=steps)


def falling(first: float, last: float, steps: int = 60, scatter: float = 0.02) -> Float64s:
    curve = last + (first - last) * np.exp(-np.arange(steps) / 15)
    return curve * (1 + scatter * np.random.default_rng(2).normal(size=steps))
