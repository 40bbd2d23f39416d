"""Where all threads stand, asked in a way that cannot stop them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from tb_stall_plugin.capture.process.current_frames import current_frames


@pytest.fixture
def collections() -> Iterator[list[str]]:
    """Those that begin, of which there is one for each new object."""
    begun: list[str] = []

    def note(phase: str, _: object) -> None:
        begun.append(phase)

    usual = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(1)
    yield begun
    gc.set_threshold(*usual)
    gc.callbacks.remove(note)


def test_no_garbage_is_collected_meanwhile(
    collections: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def frames() -> dict[int, object]:
        before = len(collections)
        made: list[object] = [{} for _ in range(100)]
        seen.append(len(collections) - before)
        return dict(enumerate(made))

    monkeypatch.setattr("sys._current_frames", frames)
    current_frames()
    assert seen == [0]
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        assert threading.get_ident() in current_frames()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_is_answered_though_nobody_gives_the_lock_back() -> None:
    """As in a child that was forked while another thread looked."""
    from tb_stall_plugin.capture.process import current_frames as module  # noqa: PLC0415

    holder = threading.Thread(target=module._lock.acquire)
    holder.start()
    holder.join()
    try:
        assert threading.get_ident() in current_frames()
    finally:
        module._lock = threading.RLock()
