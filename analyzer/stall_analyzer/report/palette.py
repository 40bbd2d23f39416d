"""The colors and letters of every view."""

from __future__ import annotations

from stall_analyzer.model.kinds import Bucket, Level, Status

# Okabe and Ito's palette, whose colors can be told apart with any kind of color vision. Letters
# stand for buckets in small bars, which must also be readable without color.
BUCKET_COLORS: dict[Bucket, str] = {
    "input": "#E69F00",
    "compile": "#56B4E9",
    "memory": "#D55E00",
    "numerics": "#CC79A7",
    "compute": "#009E73",
    "communication": "#F0E442",
    "host": "#0072B2",
    "profiler": "#999999",
    "unknown": "#777777",
}
BUCKET_LETTERS: dict[Bucket, str] = {
    "input": "i",
    "compile": "c",
    "memory": "m",
    "numerics": "n",
    "compute": "=",
    "communication": "x",
    "host": "h",
    "profiler": "p",
    "unknown": "?",
}
STATUS_COLORS: dict[Status, str] = {
    "healthy": "#009E73",
    "slow_once": "#56B4E9",
    "slow_always": "#E69F00",
    "learning_nothing": "#CC79A7",
    "stuck": "#D55E00",
    "dead": "#D55E00",
    "running": "#0072B2",
    "unknown": "#999999",
}
NOTE_COLORS: dict[Level, str] = {"error": "#D55E00", "warning": "#E69F00", "info": "dim"}
