"""Who is right where a figure of ours differs from XProf's: looked up by hand, event by event."""

from __future__ import annotations

from tests.xcheck.figures import Compared

# The case, the figure, XProf's source -> what a look at the events of the file showed.
EXPLAINED = {
    ("L01", "longest step, µs", "overview_page"): (
        "Both; they measure different things. Step 0 took 19.9 ms on GPU 4 and 21.3 ms on "
        "GPU 6, where it began 648 ms later; both tools agree on these times. XProf gives the "
        "longest time on a single device, Stall the time from the first beginning to the last end."
    ),
    ("L03", "op time, µs", "hlo_stats"): (
        "XProf. It sums the device's own clock (the stat `device_duration_ps`); Stall sums the "
        "events, which the profiler cut or stretched when it matched that clock with the host's. "
        "All ops together take 315.12 s in both."
    ),
    ("L03", "copies", "trace_viewer"): (
        "Stall: the file holds 1,200 events, as XProf's own hlo_stats says; its trace viewer "
        "leaves out some that are shorter than a few nanoseconds."
    ),
}


def explanation_of(compared: Compared) -> str:
    """Empty where nobody has looked yet."""
    return EXPLAINED.get((compared.trace[:3], compared.figure.subject, compared.source), "")
