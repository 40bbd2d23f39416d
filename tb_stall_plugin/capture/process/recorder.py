"""The event file of a capture, as the training process sees it: nothing here raises or waits.

`scalar` and `record` only put an entry into a queue. They take no lock, so they may be called from
any thread and inside a signal handler. A separate thread does the writing, once a second.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

from stall_analyzer.captures.capture_format import Tag
from stall_analyzer.captures.capture_records import CaptureRecord, EndRecord, NoteRecord
from stall_analyzer.captures.record_json import to_json
from stall_analyzer.model.kinds import Level
from tb_stall_plugin.capture.process.growing_event_file import (
    GrowingEventFile,
    Scalars,
    Text,
    encoded,
    file_header,
    open_event_file,
)

logger = logging.getLogger("stall")

KERAS_PLUGIN = "graph_keras_model"  # how TensorBoard recognizes a stored model
FLUSH_PAUSE_S = 1.0  # the most that a killed process loses
RETRY_S = 5.0  # after a failure: soon enough to lose little, rare enough to cost nothing
WAIT_FOR_WRITER_S = 1.0  # whoever flushes while another thread writes need not wait longer
WAIT_AT_THE_END_S = 5.0  # it is the last chance, and a slow disk may still be writing
# While nothing can be written, this many of the oldest bytes are kept (with the start record) …
MOST_UNWRITTEN_BYTES = 1 << 20
# … and this many of the newest entries; what lies between is lost.
MOST_QUEUED = 20_000


class Recorder:
    def __init__(
        self, logdir: str, open_file: Callable[[str, str], GrowingEventFile] = open_event_file
    ) -> None:
        self.logdir = logdir
        self.broken: str | None = None  # why nothing can be written at the moment
        self.on_flush: list[Callable[[], None]] = []  # called before each flush, to record more
        self._open_file = open_file
        self._process = os.getpid()
        began, host = int(time.time()), socket.gethostname()
        self._name = f"events.out.tfevents.{began:010d}.{host}.{self._process}"
        self._queue: deque[Scalars | Text] = deque(maxlen=MOST_QUEUED)
        self._noted: set[str] = set()
        self._step = 0  # the latest step seen; records carry it, for the Text tab
        self._writing = threading.Lock()  # guards everything below
        self._file: GrowingEventFile | None = None
        self._files = 0
        self._unwritten = b""
        self._retry_at = 0.0
        self._broken_since = 0.0
        self._closed = False

    @property
    def file_name(self) -> str:
        """The name of the next file. There is a second file only if the first must not grow."""
        return f"{self._name}.{self._files}.stall"

    # ------------------------------------------------------------ what is recorded

    def scalar(self, tag: str, value: float, step: int, wall_ns: int | None = None) -> None:
        self.scalars({tag: value}, step, wall_ns)

    def scalars(self, values: Mapping[str, float], step: int, wall_ns: int | None = None) -> None:
        """Several values of one moment, in one event: smaller and cheaper than one event each."""
        try:
            numbers = {tag: float(value) for tag, value in values.items()}
            self._add(Scalars(wall_ns or time.time_ns(), int(step), numbers))
            self._step = max(self._step, int(step))  # some steps are numbers of epochs
        except Exception as error:
            self._swallow(error)

    def record(self, record: CaptureRecord) -> None:
        try:
            now_ns = time.time_ns()
            self._add(Text(now_ns, self._step, Tag.RECORD + record.kind, to_json(record, now_ns)))
        except Exception as error:
            self._swallow(error)

    def keras_model(self, text: str) -> None:
        """Stores its JSON. TensorBoard shows it under Graphs, like a model that Keras stores."""
        self._add(Text(time.time_ns(), self._step, Tag.KERAS_MODEL, text, KERAS_PLUGIN))

    def note(self, level: Level, text: str) -> None:
        """Records what is missing from the capture, and why. Each text is recorded once."""
        if text not in self._noted:
            self._noted.add(text)
            self.record(NoteRecord(level=level, text=text))

    def _add(self, entry: Scalars | Text) -> None:
        # A forked child has a copy of our queue, but the file belongs to its parent.
        if os.getpid() == self._process and not self._closed:
            self._queue.append(entry)

    # ------------------------------------------------------------ writing

    def start(self) -> None:
        """Flushes every second from now on, in a thread that may wait for the disk."""
        threading.Thread(target=self._write_each_second, name="stall-writer", daemon=True).start()

    def _write_each_second(self) -> None:
        while not self._closed:
            self.flush()
            time.sleep(FLUSH_PAUSE_S)

    def flush(self, urgent: bool = False) -> None:
        """Writes what is queued. `urgent`: it may be the last chance, so it is not put off."""
        if os.getpid() != self._process or not self._writing.acquire(timeout=WAIT_FOR_WRITER_S):
            return
        try:
            if not self._closed and (urgent or time.monotonic() >= self._retry_at):
                self._ask()
                self._write(urgent)
        finally:
            self._writing.release()

    def _ask(self) -> None:
        try:
            for action in tuple(self.on_flush):
                action()
        except Exception as error:
            self._swallow(error)

    def end(self, reason: str) -> None:
        """Writes the end record; its absence means that the process was killed. Records after it
        mean that the process continues, if only with its exit handlers."""
        self.record(EndRecord(reason=reason))
        self.flush(urgent=True)

    def close(self, reason: str) -> None:
        """Writes the end record, and closes the file."""
        self.record(EndRecord(reason=reason))
        if os.getpid() != self._process or not self._writing.acquire(timeout=WAIT_AT_THE_END_S):
            return
        try:
            if not self._closed:
                self._ask()
                self._write(urgent=True)
            self._closed = True
            if self._file is not None:
                self._file.close()
        except Exception as error:
            self._swallow(error)
        finally:
            self._writing.release()

    def last_word(self, reason: str) -> Callable[[], object]:
        """Prepares the end record, to be written when hardly anything is left of Python."""
        now_ns = time.time_ns()
        text = to_json(EndRecord(reason=reason), now_ns)
        data = encoded([Text(now_ns, self._step, Tag.RECORD + EndRecord.kind, text)])
        return self._file.last_word(data) if self._file is not None else lambda: None

    def _write(self, urgent: bool) -> None:
        try:
            if len(self._unwritten) < MOST_UNWRITTEN_BYTES:
                self._unwritten += encoded(self._taken())
            file = self._file
            if file is None or file.is_full:
                file = self._next_file()
            if self._unwritten:
                file.append(self._unwritten, urgent)
                self._unwritten = b""
        except Exception as error:
            self._failed(error)
        else:
            if self.broken is not None:
                self._recovered(self.broken)

    def _taken(self) -> list[Scalars | Text]:
        taken = []
        while self._queue:
            taken.append(self._queue.popleft())
        return taken

    def _next_file(self) -> GrowingEventFile:
        # The name stays the same until it works, or a full disk would collect empty files.
        file = self._open_file(self.logdir, self.file_name)
        try:
            file.append(file_header(), False)
        except Exception:
            file.close()
            raise
        if self._file is not None:
            self._file.close()
        self._files += 1
        self._file = file
        return file

    def _failed(self, error: Exception) -> None:
        self._retry_at = time.monotonic() + RETRY_S
        if self.broken is None:
            self._broken_since = time.monotonic()
            logger.warning(
                "Cannot write to %s (%s). Training continues; the capture tries again every %g s.",
                self.logdir, error, RETRY_S,
            )  # fmt: skip
        self.broken = f"{type(error).__name__}: {error}"

    def _recovered(self, error: str) -> None:
        self.broken = None
        seconds = time.monotonic() - self._broken_since
        text = f"Nothing could be written for {seconds:.0f} s, and some records are lost ({error})."
        self.note("warning", text)

    def _swallow(self, error: Exception) -> None:
        text = f"{type(error).__name__}: {error}"
        if text not in self._noted:
            self._noted.add(text)
            logger.warning("The capture failed to record something: %s", text)
