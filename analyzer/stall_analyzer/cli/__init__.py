"""The command `stall-analyze`."""
