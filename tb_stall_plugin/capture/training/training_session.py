"""One training, as StallCallback and `watch` report it, passed on to the parts of the capture.

Called by the training thread. If an exception ends a fit, the watchdog ends its session. Nothing
here raises.
"""

from __future__ import annotations

import functools
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from stall_analyzer.captures.capture_format import MarkName, Tag, TrainingPhase
from stall_analyzer.captures.capture_records import MarkRecord
from tb_stall_plugin.capture.process.about import is_one_of_several
from tb_stall_plugin.capture.process.guard import Guard, folder_for, guard
from tb_stall_plugin.capture.process.pulse import NS
from tb_stall_plugin.capture.training.batch_sample import Batch
from tb_stall_plugin.capture.training.bookkeeping import Bookkeeping
from tb_stall_plugin.capture.training.circuit_breaker import CircuitBreaker
from tb_stall_plugin.capture.training.gpu_memory import bytes_in_use
from tb_stall_plugin.capture.training.keras_model import FitSettings
from tb_stall_plugin.capture.training.learning_log import LearningLog
from tb_stall_plugin.capture.training.measured_steps import MeasuredSteps
from tb_stall_plugin.capture.training.own_time import shown
from tb_stall_plugin.capture.training.probe import Probe, probe_of
from tb_stall_plugin.capture.training.tf_profiler import ProfilerTrace, a_profiler_runs, end_trace
from tb_stall_plugin.capture.training.tracing_counts import tracing_counts
from tb_stall_plugin.capture.training.window_plan import WindowPlan
from tb_stall_plugin.capture.training.windows import Windows

# Parts that can be turned off separately, in words for the user.
BATCH, WEIGHTS = "inspecting batches", "inspecting weights"
PROFILE, PROBE, LOG, MARKS = "profiling", "the probe", "logging the steps", "marking steps"
# Seen with TensorFlow 2.21: stopping the profiler during collectives crashed one worker in six.
# Their events begin on one thread and end on another, and are merged when the profiler stops.
NOT_IN_CLUSTERS = (
    "Not profiled, because this is one of several workers: stopping TensorFlow's profiler while "
    "workers exchange gradients can crash the process. A profile around the whole loop, stopped "
    "when no step is running, is safer."
)
LONG_STEP_S = 0.05  # steps at least this long are all logged, shorter ones when they are due
LONG_STEP_NS = round(LONG_STEP_S * NS)
# Shorter steps are counted this often. Between two of them, even a few microseconds of Python let
# the threads of TensorFlow fall asleep, and waking them takes far longer.
COUNT_EACH_NS = 20_000_000
TRAIN, TEST = "train", "test"  # XProf and the analyzer know steps by them; Keras 2 uses them, too


class TrainingSession:
    def __init__(
        self,
        logdir: str,
        *,
        budget: float,
        hang_after_s: float | None,
        probe: bool,
        profile: bool,
        report: bool = False,
        source: bool = True,
    ) -> None:
        self._guard = guard(logdir, hang_after_s)
        self._recorder = self._guard.recorder
        self._pulse = self._guard.pulse
        self._breaker = CircuitBreaker(self._recorder)
        self._budget = budget
        self._wants_probe = probe
        self._probe: Probe | None = None
        self._windows: Windows | None = None
        if profile and is_one_of_several():
            self._recorder.note("info", NOT_IN_CLUSTERS)
        elif profile:
            self._windows = self._guard.windows_made_by(functools.partial(_windows, budget))
        self._beginning_or_ending = threading.RLock()
        # About this fit:
        self._fit: object | None = None  # None while no fit is running
        self._when_left: Callable[[], bool] | None = None
        self._model: Any = None
        self._optimizer: Any = None
        self._traced: dict[str, int] = {}
        self._was_traced = False
        self._marks_steps = True
        self._unmarked = range(0)
        self._steps = self._test_steps = 0
        self._steps_before = 0  # of earlier fits in this process
        self._count_at = 1  # steps are counted when this many have ended,
        self._count_at_ns = 0  # or at this time
        self._looked_at = 0  # how many steps had ended at our last look
        self._look_at = 1  # how many steps will have ended at the next look
        self._epochs = self._epoch_began_at = 0
        self._began_ns = 0  # when the epoch with the first step began, on the pulse's clock
        self._measured_steps = MeasuredSteps()
        self._trace: Any = None  # of the current step
        # Set by a fit: returns a step of this epoch, and Keras's logs after it.
        self.logged: Callable[[], tuple[int, Any] | None] = lambda: None
        self._learning = LearningLog(self._recorder)
        self._bookkeeping = Bookkeeping(
            folder_for(logdir), self._recorder, self._breaker, report, source
        )
        self.books = self._bookkeeping.books

    @property
    def is_usable(self) -> bool:
        """False in a forked child, and after a guard for another folder has taken over."""
        return self._guard.is_open

    def begin(
        self,
        model: Any,
        optimizer: Any,
        *,
        steps_in_epoch: int | None = None,
        was_left: Callable[[], bool] | None = None,
        others: range = range(0),
        marks_steps: bool = True,
        callbacks: Sequence[Any] | None = None,
        settings: FitSettings | None = None,
    ) -> None:
        """A fit or a loop begins. A step is what can be seen from outside: a call of the train
        function. `was_left` tells whether an exception has ended the fit, if that can be known.
        `others`: the steps that another profiler will record, with its own marks.
        `callbacks`: those of the fit, without ours; None in a loop."""
        self._pulse.was_left()  # ends fits that an exception ended, or their models would be kept
        with self._beginning_or_ending:
            self.end()  # an exception may have ended the last one
            self._fit = fit = object()
            if was_left is not None:
                self._when_left = functools.partial(self._end_if, was_left, fit)
                self._pulse.fits.append(self._when_left)
            self._bookkeeping.open(callbacks)
            self._learning = LearningLog(self._recorder, model, optimizer, settings)
            endless = settings.endless if settings is not None else None
            self._begin(model, optimizer, steps_in_epoch, others, marks_steps, endless)

    def _begin(
        self,
        model: Any,
        optimizer: Any,
        steps_in_epoch: int | None,
        others: range,
        marks_steps: bool,
        endless: str | None,
    ) -> None:
        self._guard.describe()
        self._pulse.begin(TrainingPhase.STARTUP)
        self._model, self._optimizer, self._epochs = model, optimizer, 0
        self._steps = self._test_steps = self._looked_at = 0
        self._steps_before = self._pulse.steps_done
        self._look_at = self._count_at = 1
        self.books.untold_steps = self._uncounted
        self._began_ns = self._pulse.last_sign_ns
        self._traced = self._breaker.run(LOG, tracing_counts, model) or {}
        self._was_traced = any(self._traced.values())
        self._mark(MarkName.FIT_BEGIN, steps=steps_in_epoch, where=endless)
        first = self._pulse.steps_done
        others = range(first + others.start, first + others.stop)
        self._marks_steps = marks_steps
        self._unmarked = others
        if others:
            text = f"Steps {others[0]} to {others[-1]} were left to Keras's own profiler."
            self._recorder.note("info", text)
        if self._wants_probe:
            self._breaker.run(PROBE, self._put_in_probe, optimizer)
        self._measured_steps = self._probe.measured_steps if self._probe else MeasuredSteps()
        if self._windows is not None:
            self._windows.plan.budget = self._budget
            self._windows.fit_begins(steps_in_epoch, others)

    def end(self, write: bool = True) -> None:
        """`write`: whether to write at once, and not within a second."""
        with self._beginning_or_ending:
            if self._fit is None:
                return
            self._fit = None
            if self._when_left in self._pulse.fits:
                self._pulse.fits.remove(self._when_left)
            self.drop_step()
            if self._epochs == 0 and self._steps > 0:  # a loop that marks no epochs counts as one
                self._breaker.run(LOG, self._epoch_ended, 0, None)
            self._measured_steps.steps_ended(self._steps - self._looked_at)
            if self._probe is not None:
                self._breaker.run(PROBE, self._probe.take_out)
            self._mark(MarkName.FIT_END)
            self._bookkeeping.close()
            self._pulse.begin(TrainingPhase.IDLE)
            if self._windows is not None:
                self._windows.fit_ends()
            if write:
                self._guard.write_now()
            # We keep nothing of a finished training in memory.
            self._when_left = self._model = self._optimizer = self._probe = None
            self.logged = lambda: None
            self._learning = LearningLog(self._recorder)

    def _end_if(self, was_left: Callable[[], bool], fit: object) -> bool:
        """Called by the watchdog, which must never wait. Training may be in another fit by now."""
        if not self._beginning_or_ending.acquire(blocking=False):
            return False
        try:
            if self._fit is not fit or not was_left():
                return False
            text = "Training ended early, with an exception."
            self._recorder.note("info", text)
            self.end(write=False)
            return True
        finally:
            self._beginning_or_ending.release()

    def failed(self, error: BaseException) -> None:
        self._bookkeeping.training_failed()
        self._guard.exception(error)

    # ------------------------------------------------------------ epochs and validation

    def epoch_begins(self, epoch: int) -> None:
        # Done only now, so that the last window includes all that happens at the end of an epoch.
        if self._epochs > 0 and self._windows is not None:
            self._windows.first_epoch_ended()
        self._bookkeeping.epoch_begins(self._epochs)
        self._epochs += 1
        self._mark(MarkName.EPOCH_BEGIN, epoch)
        self._epoch_began_at = self._pulse.steps_done
        if self._steps > 0:
            self._pulse.begin(TrainingPhase.BETWEEN_BATCHES)
            self._pulse.step_begins_now()
        else:
            self._pulse.alive()
            self._began_ns = self._pulse.last_sign_ns

    def epoch_ends(self, epoch: int, logs: Any = None) -> None:
        self.drop_step()
        self._breaker.run(LOG, self._epoch_ended, epoch, logs)
        self._mark(MarkName.EPOCH_END, epoch)
        self._pulse.begin(TrainingPhase.EPOCH_END)

    def _epoch_ended(self, epoch: int, logs: Any) -> None:
        step = self._pulse.steps_done - 1
        losses = self._losses(step)  # those since the last look
        if losses:
            self._recorder.scalars(losses, step)
        self._learning.epoch_ended(epoch, logs)
        if self._wants_probe:
            # The first step had ended when the weights were first looked at.
            self._breaker.run(WEIGHTS, self._learning.look_at_weights, self._probe, self._steps - 1)

    def _losses(self, step: int) -> dict[str, float]:
        if (logged := self.logged()) is not None:
            self._learning.logged(self._epoch_began_at + logged[0] + 1, logged[1])
        return self._learning.losses(self._probe, step)

    def validation_begins(self, epoch: int, endless: bool = False) -> None:
        self.drop_step()
        self._mark(MarkName.VALIDATION_BEGIN, epoch, endless=endless)
        self._pulse.begin(TrainingPhase.VALIDATION)
        if self._windows is not None:
            self._windows.validation_begins()

    def validation_ends(self, epoch: int) -> None:
        self.drop_step()
        self._mark(MarkName.VALIDATION_END, epoch)
        self._pulse.begin(TrainingPhase.EPOCH_END)
        self._look_at, self._count_at = self._steps + 1, 1  # a window may be open

    # ------------------------------------------------------------ steps

    def step_begins(self) -> None:
        pulse = self._pulse
        if pulse.phase == TrainingPhase.BETWEEN_BATCHES:
            pulse.phase = TrainingPhase.TRAIN_BATCH
        else:
            pulse.begin(TrainingPhase.TRAIN_BATCH)
        if a_profiler_runs():
            self._open_trace(TRAIN)

    def step_ends(self, loss: Any = None, batch: Batch | None = None) -> None:
        """`loss`, if the caller knows it, may be a tensor: it is read for steps that are due, for
        which `batch` is inspected, too.

        There are many short steps. For most, only the time is noted, and no function is called.
        """
        pulse = self._pulse
        if self._trace is not None:
            self._close_trace(pulse.steps_done)
        if loss is not None or batch is not None:
            is_looked_at = self._wants_probe and self._measured_steps.is_due
            self._learning.step_ended(loss, batch if is_looked_at else None)
        now_ns = pulse.clock_ns()
        _, ends_ns = pulse.ended
        ends_ns.append(now_ns)
        if len(ends_ns) >= self._count_at or now_ns >= self._count_at_ns:
            self._steps_ended(now_ns)
        pulse.phase = TrainingPhase.BETWEEN_BATCHES

    def _steps_ended(self, now_ns: int) -> None:
        with self.books:
            self._count()
            if self._steps >= self._look_at or self._pulse.step_ns[-1] >= LONG_STEP_NS:
                shown(self._look)
        self._count_at = 1 if self.books.wants_each_step else self._look_at - self._steps
        self._count_at_ns = now_ns + COUNT_EACH_NS

    def _count(self) -> None:
        self._pulse.count_steps()
        count = self._uncounted()
        self._steps += count
        if count:
            self.books.steps_ended(count)

    def _uncounted(self) -> int:
        return self._pulse.steps_done - self._steps_before - self._steps

    def _look(self) -> None:
        """Looks at the step that has just ended, and at how long those before it took."""
        began_s = time.perf_counter()
        step = self._pulse.steps_done - 1
        count = self._steps - self._looked_at
        seconds = self._pulse.last_steps_s(count)
        is_first = self._looked_at == 0
        if is_first:  # it includes what happens before its batch, such as creating an iterator
            seconds = [(self._pulse.last_step_ns - self._began_ns) / NS]
        was_due, next_is_due = self._measured_steps.steps_ended(count)
        values: dict[str, float] = {}
        if was_due or next_is_due:
            values = self._measured(was_due, next_is_due, step)
            self._measured_steps.took(time.perf_counter() - began_s, statistics.median(seconds))
        if was_due or seconds[-1] >= LONG_STEP_S:
            values[Tag.STEP_SECONDS] = seconds[-1]
            self._recorder.scalars(values, step)
        if is_first:
            self._breaker.run(LOG, self._learning.describe, self._probe, self._why_not_probed())
        if self._windows is not None:
            self._windows.steps_ended(seconds, self._bookkeeping.python_runs_beside)
        is_busy = self._windows is not None and self._windows.is_busy
        self._looked_at = self._steps
        usual_s = statistics.median(seconds)
        self._look_at = self._steps + (1 if is_busy else self._measured_steps.rest(usual_s))

    def drop_step(self) -> None:
        """A step began, but there was no more data."""
        self._close_trace()
        self._count()

    def test_step_begins(self) -> None:
        if a_profiler_runs():
            self._open_trace(TEST)

    def test_step_ends(self) -> None:
        self._close_trace(self._test_steps)
        self._test_steps += 1
        self.books.test_step_ended()
        self._pulse.alive()
        if self._windows is not None:
            self._windows.test_step_ended()

    def _open_trace(self, name: str) -> None:
        if self._marks_steps and self._pulse.steps_done not in self._unmarked:
            self._trace = self._breaker.run(MARKS, ProfilerTrace, name)

    def _close_trace(self, step: int | None = None) -> None:
        """The number makes it a step; what began but did not become a step gets none."""
        trace, self._trace = self._trace, None
        if trace is not None:
            self._breaker.run(MARKS, end_trace, trace, step)

    # ------------------------------------------------------------ what is written

    def _mark(
        self,
        what: str,
        epoch: int | None = None,
        steps: int | None = None,
        endless: bool = False,
        where: str | None = None,
    ) -> None:
        """`where`: the generator from which endless data comes."""
        self._count()
        endless = endless or where is not None
        done = self._pulse.steps_done
        own_ns, at_ns = self.books.own_ns, self._bookkeeping.marked(what)
        self._recorder.record(
            MarkRecord(at_ns, what, epoch, done, steps, own_ns / NS, endless, where or "")
        )

    def _measured(self, was_due: bool, next_is_due: bool, step: int) -> dict[str, float]:
        """Scalars by tag, about a step that was due. The probe also prepares for one that will
        be."""
        values: dict[str, float] = {}
        if self._probe is not None:
            found = self._breaker.run(PROBE, self._probe.after_step, was_due, next_is_due)
            values.update(found or {})
        if was_due:
            values.update(self._breaker.run(LOG, self._seen_from_outside, step) or {})
            values.update(self._breaker.run(BATCH, self._learning.look_at_batch, self._probe) or {})
        return values

    def _seen_from_outside(self, step: int) -> dict[str, float]:
        values = self._losses(step)
        for function, count in tracing_counts(self._model).items():
            if count != self._traced.get(function, 0):
                self._traced[function] = count
                values[Tag.TRACES_OF + function] = count
        return values | bytes_in_use()

    def _put_in_probe(self, optimizer: Any) -> None:
        if optimizer is not None:
            self._probe = probe_of(optimizer)
            self._probe.put_in(self._model)

    def _why_not_probed(self) -> str | None:
        if not self._wants_probe:
            return "the probe was turned off"
        if self._probe is None:
            return "there is no optimizer to measure"
        if self._probe.failure is not None:
            return self._probe.failure
        if self._probe.is_in_step:
            return None
        if self._was_traced:
            return "the train function had already been traced by a fit without the probe"
        return "the step did not go through the optimizer"


def _windows(budget: float, guard: Guard) -> Windows:
    switch_off = functools.partial(CircuitBreaker(guard.recorder).switch_off, PROFILE)
    return Windows(guard.logdir, guard.recorder, guard.pulse, WindowPlan(budget), switch_off)
