"""Captured runs while they are running: their files are followed, and each look says how far they
are.

followed_file     what is new in an event file that grows
followed_process  the records of one process that its present state needs
followed_run      the processes of a run, as captures of the current epoch
watcher           the runs of a log directory
state             how far a process is: epoch, step, shares of its time, what it is doing right now
words             the same in one line
first_epoch       what the capture prints in the training's terminal when that epoch is over
"""
