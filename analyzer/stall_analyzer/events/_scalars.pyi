INTERFACE: int

def layout_of(data: bytes, /) -> bytes | None:
    """What a record has in common with others: its bytes without time, step and values. None where
    it holds anything but floats, or one tensor of doubles."""

def take_known(
    chunk: bytes, at: int, layouts: dict[bytes, tuple[int, ...] | int], /
) -> tuple[int, int, bytes, bytes, float, float]:
    """Take the records of a chunk from `at` on whose layout is known: that of scalars has numbers
    of columns, that of a histogram its own. Returns the place of the first other one, how many were
    taken, a row for each scalar (column and step as int64, wall_s and value as float64) and for
    the histograms of each number (that, what they come to, and place and size of the last content,
    as int64), and the first and last time of a histogram, both 0 where there is none."""
