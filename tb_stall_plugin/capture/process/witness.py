"""Records what this process is doing: a sample, a heartbeat or a dump."""

from __future__ import annotations

import time
from dataclasses import replace

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.captures.look_records import CapturedError, DumpRecord, Look
from stall_analyzer.captures.stack_frames import frame_of
from tb_stall_plugin.capture.process import thread_stacks
from tb_stall_plugin.capture.process.child_processes import child_processes
from tb_stall_plugin.capture.process.host_sampler import HostSampler
from tb_stall_plugin.capture.process.pool_tasks import tasks_left
from tb_stall_plugin.capture.process.pulse import Pulse
from tb_stall_plugin.capture.process.recorder import Recorder
from tb_stall_plugin.capture.process.used_as_data import becomes_data


class Witness:
    def __init__(
        self,
        recorder: Recorder,
        pulse: Pulse,
        hang_after_s: float | None,
        host: HostSampler | None = None,
    ) -> None:
        self.recorder = recorder
        self.pulse = pulse
        self.hang_after_s = hang_after_s
        self._host = host or HostSampler()
        self._last_sample: dict[str, float] = {}

    def limit_s(self) -> float:
        """How long training may go without a sign of life, as the user set it, or else as
        learned."""
        return self.pulse.limit_s() if self.hang_after_s is None else self.hang_after_s

    def sample(self) -> None:
        """Records the host's figures that have changed."""
        sample = self._host.sample()
        changed = {
            Tag.HOST + name: value
            for name, value in sample.items()
            if self._last_sample.get(name) != value
        }
        self._last_sample = sample
        self.recorder.scalars(changed, self.pulse.steps_done)

    def beat(self) -> None:
        self.recorder.record(self._look_into_threads())

    def dump(self, reason: str, error: CapturedError | None = None, signal_ns: int = 0) -> None:
        look = self._look_into_threads()
        dump = DumpRecord(
            **vars(look),
            reason=reason,
            for_data=_is_for_data(look),
            signal_ns=signal_ns,
            native=thread_stacks.native_threads(),
            memory=self._host.sample(),
            error=error or CapturedError(),
        )
        self.recorder.record(dump)

    def look(self) -> Look:
        return Look(
            step=self.pulse.steps_done,
            idle_s=self.pulse.idle_s(),
            limit_s=self.limit_s(),
            phase=self.pulse.phase,
            cpu_s=time.process_time() - thread_stacks.own_run_time_s(),
        )

    def _look_into_threads(self) -> Look:
        return replace(
            self.look(),
            threads=thread_stacks.python_threads(),
            children=child_processes(),
            tasks_left=tasks_left(),
        )


def _is_for_data(look: Look) -> bool:
    frames = map(frame_of, reversed(look.main.frames if look.main is not None else ()))
    return becomes_data((f.path, f.line) for f in frames if f is not None and f.is_users)
