from stall_analyzer.decode.event_columns import Core

INTERFACE: int
read_plane: Core

def read_names(data: bytes, begin: int, end: int) -> list[tuple[int, int, int, int, str]]:
    """The sound entries of a plane's tables from `begin` on, up to anything else: the number of the
    table's field, where the entry begins and ends, its key and its name."""
