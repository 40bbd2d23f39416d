"""The console of a job: how it ended, and the warnings that explain its time."""
