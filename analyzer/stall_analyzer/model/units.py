"""The units that every stage counts in, and the numpy columns that hold them.

Times are integers in picoseconds, intervals are half-open, and names contain the unit. Floats
appear only in views and in confidences."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Int64s: TypeAlias = "npt.NDArray[np.int64]"
Int32s: TypeAlias = "npt.NDArray[np.int32]"
UInt8s: TypeAlias = "npt.NDArray[np.uint8]"
UInt32s: TypeAlias = "npt.NDArray[np.uint32]"
Float64s: TypeAlias = "npt.NDArray[np.float64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"
PS_PER_NS = 1_000
PS_PER_US = 1_000_000
PS_PER_MS = 1_000_000_000
PS_PER_S = 1_000_000_000_000
NS_PER_S = 1_000_000_000
NEVER = -(1 << 62)  # the time of something that did not happen
