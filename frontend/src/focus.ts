/**
 * What the reader has asked to be shown in the timeline: the evidence of a finding, a bucket, a
 * step, the hits of a search. One concept, so that the timeline need not know where the request came from.
 */

import { duration, evidenceLabel } from "./model";
import type { Bucket, Finding, Hit, Ps, Span, Step, TimelineAnswer } from "./types";
import { bucketOf } from "./palette";

export interface Focus {
  title: string;
  spans: readonly (Span & { label: string })[];
  /** Which span to go to; null for all of them together. */
  at: number | null;
  /** The bucket whose color marks the spans. */
  bucket?: Bucket;
  findingId?: string;
  /** One event of the timeline. */
  event?: Hit & { row: number };
}

export function focusOnFinding(finding: Finding, at: number | null = null): Focus {
  return {
    title: `${finding.id} ${finding.title}`,
    spans: finding.evidence.map((evidence) => ({ ...evidence, label: evidenceLabel(evidence) })),
    at,
    bucket: finding.bucket,
    findingId: finding.id,
  };
}

export function focusOnStep(step: Step): Focus {
  const title =
    step.phase === "validation" ? `validation step ${step.index}` : `step ${step.index}`;
  return { title, spans: [{ ...step, label: title }], at: 0 };
}

export function focusOnHit(hit: Hit): Focus {
  const focus = { title: hit.name, spans: [{ ...hit, label: hit.name }], at: 0 };
  return hit.row === undefined ? focus : { ...focus, event: { ...hit, row: hit.row } };
}

const STRETCHES_MOST = 20;

/** The longest stretches of a bucket, longest first; null if the timeline shows none. */
export function focusOnBucket(bucket: Bucket, timeline: TimelineAnswer): Focus | null {
  const ledger = timeline.lanes.find(({ id }) => id === "ledger");
  const stretches: Span[] = [];
  for (const [start_ps, end_ps, name] of ledger?.items ?? []) {
    if (bucketOf(timeline.names[name] ?? "") !== bucket) continue;
    const last = stretches.at(-1);
    if (last && last.end_ps >= start_ps) last.end_ps = end_ps;
    else stretches.push({ start_ps, end_ps });
  }
  if (stretches.length === 0) return null;
  stretches.sort((a, b) => duration(b) - duration(a));
  const spans = stretches.slice(0, STRETCHES_MOST).map((span) => ({ ...span, label: bucket }));
  return { title: `${bucket}, longest stretches`, spans, at: 0, bucket };
}

const CONTEXT = 0.15; // on each side, to show what came before and after
const SHORTEST_VIEW_PS: Ps = 1e6; // 1 µs: an instant still needs some width around it

/** The part of the window that shows what the focus asks for. */
export function viewOf(focus: Focus, windowPs: Ps): Span {
  const spans = focus.at === null ? focus.spans : focus.spans.slice(focus.at, focus.at + 1);
  if (spans.length === 0) return { start_ps: 0, end_ps: windowPs };
  const start = Math.min(...spans.map(({ start_ps }) => start_ps));
  const end = Math.max(...spans.map(({ end_ps }) => end_ps));
  const length = Math.max(end - start, SHORTEST_VIEW_PS, windowPs / 1e6);
  const middle = (start + end) / 2;
  const half = length * (0.5 + CONTEXT);
  return { start_ps: Math.max(0, middle - half), end_ps: Math.min(windowPs, middle + half) };
}
