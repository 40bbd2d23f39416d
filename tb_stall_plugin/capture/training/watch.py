"""`watch`: the capture for training loops that are not Keras's own."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tb_stall_plugin.capture.training.batch_sample import Batch
from tb_stall_plugin.capture.training.training_session import TrainingSession

logger = logging.getLogger("stall")


class watch:
    """Captures a training loop for `stall-analyze` and the Stall tab.

        with watch("logs/run1", model, optimizer) as w:
            for epoch in range(epochs):
                w.epoch()
                for batch in dataset:
                    loss = train_step(batch)
                    w.step(loss=loss)

    The optimizer is measured if it is a Keras optimizer and `train_step` has not been traced yet.
    An exception that leaves the block is recorded and raised again. `watch` itself raises none.
    """

    def __init__(  # noqa: PLR0913 (options, each given by its name)
        self,
        logdir: str | os.PathLike[str],
        model: Any = None,
        optimizer: Any = None,
        hang_after_s: float | None = None,
        *,
        budget: float = 0.02,
        probe: bool = True,
        profile: bool = True,
        report: bool = True,
        source: bool = True,
    ) -> None:
        self._options: dict[str, Any] = {
            "logdir": os.fspath(logdir),
            "budget": budget,
            "hang_after_s": hang_after_s,
            "probe": probe,
            "profile": profile,
            "report": report,
            "source": source,
        }
        self._model = model
        self._optimizer = getattr(model, "optimizer", None) if optimizer is None else optimizer
        self._session: TrainingSession | None = None
        self._epoch: int | None = None

    def __enter__(self) -> watch:
        self._try(self._begin)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._try(self._end, error)

    def epoch(self) -> None:
        """An epoch begins."""
        self._try(self._begin_epoch)

    def step(
        self,
        loss: Any = None,
        *,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
    ) -> None:
        """A step has ended. The loss may be a tensor: it is fetched for some steps only. For those,
        the inputs, labels and outputs are examined, and a few numbers about them are kept."""
        given = Batch(x, y, y_pred, sample_weight)
        batch = given if any(part is not None for part in given) else None
        self._try(self._end_step, loss, batch)

    def _begin(self) -> None:
        self._session = TrainingSession(**self._options)
        self._session.begin(self._model, self._optimizer)
        self._session.step_begins()

    def _begin_epoch(self) -> None:
        if self._session is not None:
            self._end_epoch(self._session)
            self._epoch = 0 if self._epoch is None else self._epoch + 1
            self._session.epoch_begins(self._epoch)
            self._session.step_begins()

    def _end_step(self, loss: Any, batch: Batch | None) -> None:
        if self._session is not None:
            self._session.step_ends(loss, batch)
            self._session.step_begins()

    def _end(self, error: BaseException | None) -> None:
        if self._session is not None:
            if error is not None:
                self._session.failed(error)
            self._end_epoch(self._session)
            self._session.end()

    def _end_epoch(self, session: TrainingSession) -> None:
        if self._epoch is not None:
            session.epoch_ends(self._epoch)

    def _try(self, action: Callable[..., None], *arguments: Any) -> None:
        session = self._session
        try:
            with contextlib.nullcontext() if session is None else session.books:
                action(*arguments)
        except Exception:
            self._session = None
            logger.warning("The capture is turned off; training continues.", exc_info=True)
