from stall_analyzer.decode.columns import RawResult, RawTables, Rows, StatRows

# A columns.Core.
def read_plane(
    fd: int,
    lines: bytes,
    tables: RawTables,
    columns: tuple[Rows, tuple[StatRows, ...]],
    unnamed_rows: int,
    /,
) -> RawResult: ...
