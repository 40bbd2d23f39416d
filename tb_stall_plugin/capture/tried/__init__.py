"""`stall-analyze try`: measures a change, applied from outside, against the unchanged program."""
