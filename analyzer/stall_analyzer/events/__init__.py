"""Read event files."""
