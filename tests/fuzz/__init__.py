"""Damaged inputs by the million: `make fuzz`.

docs/explanation/robustness.md says what was found by them.

seeds      small sound logs of every kind, to be damaged
mutations  what is done to them
pipeline   whole analyses of damaged logs, under a limit of memory and time
decoders   the native decoder against the pure one, on damaged traces
native/    the native decoder under libFuzzer, AddressSanitizer and UBSan
kills      a batch that is killed at random moments, and started again
soak       thousands of requests and analyses: does memory stay flat?
"""
