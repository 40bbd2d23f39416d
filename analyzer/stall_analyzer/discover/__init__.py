"""Find the runs under any path."""
