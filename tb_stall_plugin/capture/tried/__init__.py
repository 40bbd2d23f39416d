"""`stall-analyze try`: a change applied from outside, measured against the program without it."""
