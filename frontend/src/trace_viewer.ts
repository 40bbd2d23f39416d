/**
 * Links into the Profile plugin's trace viewer. The page behind them is not documented by XProf
 * (tried with 2.24), so all that is known about it is in this file, and a browser test opens it.
 */

import { PS_PER_MS } from "./format";
import type { Evidence, Span, Trace } from "./types";

const CONTEXT = 0.2; // of the evidence's length, on each side
const LEAST_CONTEXT_MS = 0.05;

/** The trace viewer at the time of the evidence; null if no trace saw it. */
export function traceViewerUrl(
  root: string,
  evidence: Evidence,
  traces: readonly Trace[],
): string | null {
  const origin = traces.find(({ host }) => host === evidence.host) ?? traces[0];
  if (!origin) return null;
  const data = new URL("data/plugin/profile/data", root);
  data.search = query({ run: origin.session, tag: "trace_viewer@", host: origin.host });
  const [start, end] = viewMs(evidence, origin.start_ps);
  const page = new URL("data/plugin/profile/trace_viewer_index.html", root);
  page.search = query({
    is_streaming: "true",
    is_oss: "true",
    trace_data_url: data.pathname + data.search, // the viewer adds its own origin
    view_start: start.toFixed(6),
    view_end: end.toFixed(6),
  });
  return page.href;
}

/** The Profile plugin knows a session only after it has been asked to list them once. */
export async function wakeProfilePlugin(root: string): Promise<void> {
  await fetch(new URL("data/plugin/profile/runs", root)).catch(() => null);
}

/** Milliseconds from the trace's own beginning. */
function viewMs(span: Span, originPs: number): [number, number] {
  const start = (span.start_ps - originPs) / PS_PER_MS;
  const end = (span.end_ps - originPs) / PS_PER_MS;
  const context = Math.max((end - start) * CONTEXT, LEAST_CONTEXT_MS);
  return [Math.max(0, start - context), end + context];
}

/** Not URLSearchParams: it writes a space as "+", which the viewer does not read back. */
function query(pairs: Record<string, string>): string {
  return Object.entries(pairs)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join("&");
}
