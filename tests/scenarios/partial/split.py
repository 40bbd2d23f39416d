"""Which programs rules may be made from, and which are set aside to check them.

The name alone decides, so that nobody can choose: neither by what a program does nor by how the
analyzer fares on it. Both forms of a faulty program have one name and fall into the same half.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Literal, TypeAlias

Half: TypeAlias = Literal["development", "aside"]
HALVES: tuple[Half, Half] = ("development", "aside")


def half_of(program: str) -> Half:
    return "aside" if sha256(program.encode()).digest()[-1] % 2 else "development"
