from stall_analyzer.decode.columns import LineResult, PlaneResult

__all__ = ["LineResult", "PlaneResult", "read_plane"]

# Takes what pure.read_plane takes and gives back equal plain tuples.
def read_plane(
    fd: int,
    lines: bytes,
    event_ids: bytes,
    keep_from_ps: bytes,
    fold_bits: bytes,
    stat_ids: bytes,
    stat_column: bytes,
    pinned: bytes,
    rows: tuple[bytearray, ...],
    stats: tuple[tuple[bytearray, bytearray, bytearray], ...],
    unnamed_rows: int,
    /,
) -> tuple[
    list[tuple[int, int, int, int, int, int]], list[int], bytes, list[bytes]
]: ...
