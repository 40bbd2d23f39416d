"""`watch` as the authors of some programs were told to use it: around what a loop runs over."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import tb_stall_plugin

Batch = TypeVar("Batch")


def watch(batches: Iterable[Batch], logdir: str) -> Iterator[Batch]:
    with tb_stall_plugin.watch(logdir) as loop:
        for batch in batches:
            yield batch
            loop.step()
