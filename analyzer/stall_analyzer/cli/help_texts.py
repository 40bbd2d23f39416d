"""What `--help` and `--help-all` say besides the options themselves."""

from __future__ import annotations

from textwrap import indent

from stall_analyzer.captures.how_to_capture import HOW_TO_CAPTURE

MOST_IN_FULL = 20  # runs; for more, sums are more useful than reports

# What fits on a screen, since a person reads it. The rest is in --help-all.
SHORT_HELP = f"""\
usage: stall-analyze PATH… [options]

Why is my training stuck on the first epoch? Reads the TensorFlow traces and
event files under each PATH (a TensorBoard log directory, or a run in it) and
says where the wall time of the first epoch went, and what to change.

  stall-analyze logs/                         every run under logs/
  stall-analyze logs/ --run 'resnet*'         only some of them
  stall-analyze logs/ --html stall.html       one file to share
  stall-analyze --explain ST104               what a finding means

record a run, or look at one:
  stall-analyze capture -- python train.py    record it, and why it hangs
  stall-analyze check train.py                can it learn? tries one batch
  stall-analyze try ST109 -- python train.py  does the change help? measures it
  stall-analyze attach PID                    why does it hang? needs no logs
  stall-analyze watch logs/                   how the runs are doing right now

most used:
  --run NAME        only runs with this name or pattern
  --since 3d        only runs with files that changed in the last 3 days
  --format FORM     text, json, markdown, github, sarif or junit
  -o FILE           write the report to FILE
  --full            show every run in full, even if there are more than {MOST_IN_FULL}
  --fail-over LIMIT exit with 5 if a run exceeds it: input=20%, epoch=10m …
  --baseline FILE   exit with 6 if a run is worse than in this result
  --list-findings   list everything that can be found
  --help-all        all options, how to capture with TensorFlow, exit codes
"""

DESCRIPTION = """\
Why is my training stuck on the first epoch?

Reads TensorFlow profiler traces and event files under each PATH (a TensorBoard
log directory, or a run in it) and divides the wall time of the first epoch
exactly: waiting for input, compiling, memory, numerics, communication, Python
on the host, and the model's own work. What the files do not show is called
unknown. Nothing is written into a log directory.
"""

EPILOG = f"""\
how to capture the first epoch:
{indent(HOW_TO_CAPTURE, "  ")}

  Event files alone are enough to see that the first epoch is slow; the
  trace is what shows why. StallCallback records the trace in pieces, and also
  records where a run hangs. Profile writes its trace only when its block ends,
  so shorten a very long epoch with steps_per_epoch=200.

examples:
  stall-analyze capture -- python train.py    record a run, and why it hangs;
                                         more: stall-analyze capture --help
  stall-analyze check train.py           can it learn at all? tries one batch
  stall-analyze try ST109 -- python train.py  does the change help? measures it
  stall-analyze attach PID               why does it hang? needs no logs
  stall-analyze watch logs/              how the runs are doing right now
  stall-analyze logs/                    every run under logs/
  stall-analyze logs/ --run 'resnet*'    only some of them
  stall-analyze logs/ --json -o stall.json
  stall-analyze logs/ --html stall.html  one file to share: the tab's page
  stall-analyze logs/ --annotate out/    traces with Stall's lines added
  stall-analyze --explain ST104          what a finding means, and what to do

many runs (docs/how-to/cluster.md has more):
  stall-analyze s3://bucket/logs --jsonl all.jsonl --parquet tables/
  stall-analyze logs/ --since 1d --fail-over input=20% --fail-over status=stuck
  stall-analyze logs/ --baseline last.jsonl --jsonl new.jsonl
  stall-analyze logs/ --scheduler tcp://head:8786

  More than {MOST_IN_FULL} runs are summarized; --full or --run shows them in full. Results are
  kept, and a run is read again only when its files have changed. If a pass
  is killed, start it again, and it continues where it stopped.

exit codes:
  0    a report was made, whatever its verdict, or no run was selected
  1    internal error
  2    the command line, the settings or the output file cannot be used, or none
       of the runs is in the baseline
  3    no run was found
  4    a file or a run could not be read; the rest is in the report
  5    a run exceeds a --fail-over limit
  6    a run is worse than in the --baseline
  7    the --scheduler cluster cannot be used, or was lost
  130  interrupted
  If several apply, 2 comes before 5, 5 before 6, and 6 before 4.
"""
