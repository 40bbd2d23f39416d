/** Two clocks: the first epoch's, and that of the trace viewer, which counts from a trace's start. Pure. */

import type { Ps, Trace } from "../types";

/** The trace that saw an instant: the last one of the host that had begun by then. */
export function traceAt(traces: readonly Trace[], host: string | null, ps: Ps): Trace | null {
  const own = traces
    .filter((trace) => host === null || trace.host === host)
    .sort((a, b) => a.start_ps - b.start_ps);
  return own.filter(({ start_ps }) => start_ps <= ps).at(-1) ?? own[0] ?? null;
}
