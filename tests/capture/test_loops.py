"""The loop that a frame is in, according to its bytecode."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from stall_analyzer.captures.look_records import Loop
from tb_stall_plugin.capture.process.loops import loop_at, loop_of, takes_all_in, yields_for_ever
from tests.capture.capture_logs import until
from tests.capture.test_kernel_view import needs_linux, waiting


def here() -> Loop | None:
    frame = sys._getframe(1)
    loop = loop_of(frame)
    return loop and Loop(
        loop.word,
        loop.line - frame.f_code.co_firstlineno,
        loop.last - frame.f_code.co_firstlineno,
        loop.is_empty,
    )


def in_a_while_loop() -> Loop | None:
    found = None
    while found is None:
        found = here()
    return found


def after_a_loop() -> Loop | None:
    for _ in range(3):
        pass
    return here()


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (in_a_while_loop, "while"),
        (after_a_loop, None),
    ],
)
def test_the_innermost_loop_is_found(function: Callable[[], Loop | None], word: str | None) -> None:
    found = function()
    assert (found.word if found else None) == word


def test_a_for_loop_ends_with_its_data() -> None:
    def each() -> Iterator[Loop | None]:
        for _ in range(3):
            yield here()

    assert [loop and loop.word for loop in each()] == ["for"] * 3


def test_the_lines_of_a_loop_are_known() -> None:
    found = in_a_while_loop()
    assert found is not None and (found.line, found.last) == (2, 3)
    assert not found.is_empty, "it calls a function"


@needs_linux
@pytest.mark.skipif(sys.version_info < (3, 11), reason="it can be seen since Python 3.11")
def test_an_empty_loop_is_seen_where_it_jumps_back() -> None:
    stop = False

    def spin() -> None:
        while not stop:
            pass

    def seen() -> Iterator[Loop | None]:
        frames = sys._current_frames().values()
        return (loop_of(frame) for frame in frames if frame.f_code is spin.__code__)

    with waiting(spin):
        until(lambda: any(loop is not None and loop.is_empty for loop in seen()))
        stop = True


def _endless(n: int) -> Loop | None:
    while True:
        n += len(str(n))


def _forgets_to_count(n: int) -> Loop | None:
    i = 0
    while i < n:
        print(i)
    return None


def _counts(n: int) -> Loop | None:
    i = 0
    while i < n:
        i += len(str(n))
    return None


def _breaks(n: int) -> Loop | None:
    while True:
        n += len(str(n))
        if n > 1000:
            break
    return None


def _returns(n: int) -> Loop | None:
    while True:
        n += len(str(n))
        if n > 1000:
            return None


def _ends_by_an_error(n: int) -> Loop | None:
    numbers = iter(range(n))
    while True:
        try:
            next(numbers)
        except StopIteration:  # noqa: PERF203
            return None


def _asks(n: int) -> Loop | None:
    numbers = [n]
    while numbers:
        print(numbers.pop())
    return None


@pytest.mark.parametrize(
    ("function", "has_no_end"),
    [
        (_endless, True),
        (_forgets_to_count, True),
        (_counts, False),
        (_breaks, False),
        (_returns, False),
        (_ends_by_an_error, False),
        (_asks, False),
    ],
)
def test_a_loop_without_a_way_out_is_known_by_its_code(
    function: Callable[[int], Loop | None], has_no_end: bool
) -> None:
    first = function.__code__.co_firstlineno
    loops = [loop_at(function.__code__, first + line) for line in range(8)]
    assert {loop.has_no_end for loop in loops if loop is not None} == {has_no_end}


def batches() -> Iterator[int]:
    while True:
        for i in range(3):
            if i != 1:
                yield i


def batches_of_an_epoch() -> Iterator[int]:
    n = 0
    while True:
        if n > 3:
            return
        n += 1
        yield n


def test_a_generator_that_only_yields_has_no_end() -> None:
    first = batches.__code__.co_firstlineno
    assert (yields_for_ever(batches.__code__) or 0) - first in (1, 2)
    assert yields_for_ever(batches_of_an_epoch.__code__) is None
    assert yields_for_ever(in_a_while_loop.__code__) is None


def asked() -> Iterator[bool]:
    while True:
        yield takes_all_in(sys._getframe(1)) is not None


def takes_all(seen: list[bool]) -> None:
    for found in asked():
        with suppress(KeyError):
            seen.append(found)
        print(1 / (2 - len(seen)))


def takes_some(seen: list[bool]) -> None:
    for found in asked():
        seen.append(found)
        if len(seen) == 2:
            break


def test_a_for_loop_without_a_break_takes_all() -> None:
    seen: list[bool] = []
    with pytest.raises(ZeroDivisionError):
        takes_all(seen)
    assert seen == [True, True]
    takes_some(seen := [])
    assert seen == [False, False]
