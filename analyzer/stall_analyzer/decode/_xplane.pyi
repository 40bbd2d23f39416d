from stall_analyzer.decode.event_columns import Core

INTERFACE: int
read_plane: Core
