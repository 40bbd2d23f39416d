"""Programs that run with and without a capture, in a process each: nothing else may differ."""
