def layout_of(data: bytes, /) -> bytes | None:
    """What a record of scalars has in common with others: its bytes without time, step and values.
    None where it holds anything but floats."""

def take_scalars(
    chunk: bytes, at: int, layouts: dict[bytes, tuple[int, ...]], /
) -> tuple[int, int, bytes]:
    """Take the records of a chunk from `at` on whose layout is known, to columns of these numbers.
    Returns the place of the first other one, how many were taken, and a row for each value: column
    and step as int64, wall_s and value as float64."""
