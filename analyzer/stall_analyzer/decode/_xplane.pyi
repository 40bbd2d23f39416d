from stall_analyzer.decode.event_columns import BytesRead, RawResult, RawTables, Rows, StatRows

INTERFACE: int

# A columns.Core.
def read_plane(
    fd: int,
    lines: bytes,
    tables: RawTables,
    columns: tuple[Rows, tuple[StatRows, ...]],
    unnamed_rows: int,
    progress: BytesRead,
    /,
) -> RawResult: ...
