"""Read one host's trace, whatever its format, into columns."""
