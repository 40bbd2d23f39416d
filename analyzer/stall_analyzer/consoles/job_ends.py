"""What kernels, shells and schedulers write when a job does not end by itself."""

from __future__ import annotations

import re

from stall_analyzer.consoles.console_text import ConsoleText
from stall_analyzer.model.console_log import EndKind, JobEnd

# Those that give the reason come before those that only say that it ended.
ENDS: tuple[tuple[EndKind, re.Pattern[str]], ...] = (
    ("time_limit", re.compile(r"CANCELLED AT \S+ DUE TO TIME LIMIT|PBS: job killed: walltime")),
    ("preempted", re.compile(r"CANCELLED AT \S+ DUE TO PREEMPTION")),
    ("node_failed", re.compile(r"DUE TO NODE FAILURE|NODE_FAIL\b")),
    (
        "out_of_memory",
        re.compile(
            r"Detected \d+ oom[-_]kill event|[Oo]ut of memory: Killed process|\bOOMKilled\b"
            r"|task \S+: Out Of Memory|std::bad_alloc|Exceeded job memory limit"
            r"|Memory limit exceeded|killed by the cgroup out-of-memory handler"
        ),
    ),
    ("cancelled", re.compile(r"slurmstepd: error: \*\*\* (?:JOB|STEP) .*CANCELLED AT ")),
    (
        "crashed",
        re.compile(
            r"Segmentation fault|(?:exit(?:ed with)?(?: exit)? (?:code|status)[: ]+139)\b"
            r"|Fatal Python error:|^F\d{4} [\d:.]+ .*\] |: F (?:tensorflow|external|xla)/"
            r"|\bBus error\b|Illegal instruction|\bAborted\b.*\(core dumped\)",
            re.MULTILINE,
        ),
    ),
    (
        "killed",
        re.compile(
            r"^(?:.*: line \d+: +\d+ )?Killed(?: {2,}.*)?\s*$|task \S+: Killed\b"
            r"|exit(?:ed with)?(?: exit)? (?:code|status)[: ]+137\b",
            re.MULTILINE,
        ),
    ),
    (
        "told_to_end",
        re.compile(
            r"^(?:.*: line \d+: +\d+ )?Terminated(?: {2,}.*)?\s*$|task \S+: Terminated\b"
            r"|exit(?:ed with)?(?: exit)? (?:code|status)[: ]+143\b",
            re.MULTILINE,
        ),
    ),
    ("exit_code", re.compile(r"srun: error: .*Exited with exit code (?!0\b)\d+")),
)
LAST_CHARACTERS = 64 << 10  # such words come last; a program itself may print "Killed" long before


def job_end(console: ConsoleText, last_progress: int) -> JobEnd | None:
    """The first reason given after the last step."""
    begin = max(len(console.text) - LAST_CHARACTERS, last_progress, 0)
    for kind, pattern in ENDS:
        match = pattern.search(console.text, begin)
        if match is not None:
            return JobEnd(kind, console.line(match.end() - 1))
    return None
