/** What the views show, computed from the report. Pure: no DOM, no time, no network. */

import { between, counted, percent, seconds } from "./format";
import { BUCKETS } from "./palette";
import type {
  Bucket,
  BucketTimes,
  Estimate,
  Evidence,
  Finding,
  Note,
  Phase,
  Ps,
  Range,
  Report,
  Span,
  Step,
} from "./types";

export interface Part {
  bucket: Bucket;
  ps: Ps;
}

/** Buckets that are not empty, in the order that every bar has. */
export function parts(times: BucketTimes): Part[] {
  return BUCKETS.map((bucket) => ({ bucket, ps: times[bucket] ?? 0 })).filter(({ ps }) => ps > 0);
}

/** The same, largest first: the order of every list. */
export function largestFirst(times: BucketTimes): Part[] {
  return parts(times).sort((a, b) => b.ps - a.ps);
}

export function total(times: BucketTimes): Ps {
  return parts(times).reduce((sum, { ps }) => sum + ps, 0);
}

// ---------------------------------------------------------------- where the time went

/**
 * Estimated if not all was traced, else measured. Every view shows these figures, so that no two of
 * them differ. The same as `figures` in stall_analyzer/report/facts.py.
 */
export function figuresOf(report: Report): Report | Estimate {
  return report.estimate ?? report;
}

/** If no more than this share was traced, the rest is a guess, or an estimate. */
export const LITTLE_COVERED = 0.5;

/** `~2.10 s`: marks an estimated figure. */
export function about(text: string, isEstimated: boolean): string {
  return isEstimated ? `~${text}` : text;
}

/** "1.40–2.60 s": how long a bucket may have taken; empty if that was measured. */
export function bucketRange({ estimate }: Report, bucket: Bucket): string {
  const range = estimate?.ranges_ps[bucket];
  return range && range.low < range.high ? between(range) : "";
}

export function tracedShare({ window }: Report): string {
  const share = window.covered_ps
    ? `only ${percent(window.covered_ps, window.duration_ps)}`
    : "none";
  return `${share} of the epoch was traced`;
}

/**
 * "3.00 s ± 1.00 s" for each; the error only where there is one. A phase begins where the one
 * before it ends, and is as unsure as both of its ends.
 */
export function phaseTimes(phases: readonly Phase[]): string[] {
  return phases.map((phase, index) => {
    const errorPs = phase.error_ps + (phases[index - 1]?.error_ps ?? 0);
    return `${seconds(duration(phase))}${errorPs > 0 ? ` ± ${seconds(errorPs)}` : ""}`;
  });
}

/** Where the time of a phase went. If there is an estimate, untraced time is not a cost. */
export function phaseParts({ buckets_ps: times, ...span }: Phase, isEstimated: boolean): string {
  const whole = duration(span);
  if (!isEstimated || !times.unknown) return mostly(times, whole);
  const known = { ...times, unknown: 0 };
  if (total(known) === 0) return "not traced";
  return `traced ${percent(total(known), whole)}: ${mostly(known, whole)}`;
}

/** A cause below this share of the window is not worth a line. */
const SMALLEST_CAUSE = 1 / 200;

export function causesOf(report: Report, bucket: Bucket): { cause: string; ps: Ps }[] {
  const smallest = report.window.duration_ps * SMALLEST_CAUSE;
  return Object.entries(figuresOf(report).causes_ps)
    .filter(([cause, ps]) => cause.startsWith(`${bucket}.`) && ps >= smallest)
    .map(([cause, ps]) => ({ cause, ps }))
    .sort((a, b) => b.ps - a.ps);
}

export function duration(span: Span): Ps {
  return span.end_ps - span.start_ps;
}

// ---------------------------------------------------------------- steps

export function median(values: readonly number[]): number {
  if (values.length === 0) return 0;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** One column of the step chart: a step or, if there are too many, the longest of several. */
export interface StepColumn {
  step: Step;
  firstIndex: number;
  lastIndex: number;
}

export function stepColumns(steps: readonly Step[], most: number): StepColumn[] {
  const count = Math.min(steps.length, Math.max(1, Math.floor(most)));
  return Array.from({ length: count }, (_, column) => {
    const group = steps.slice(
      Math.floor((steps.length * column) / count),
      Math.floor((steps.length * (column + 1)) / count),
    );
    const step = group.reduce((longest, other) =>
      duration(other) > duration(longest) ? other : longest,
    );
    return { step, firstIndex: group[0]!.index, lastIndex: group[group.length - 1]!.index };
  });
}

/** A step many times longer than the others would make all others invisible. */
const TALLEST_TO_MEDIAN = 4;
const CAPPED_TO_MEDIAN = 2.5;

/** Where the axis of the step chart ends; taller columns are cut off. */
export function stepAxisEnd(steps: readonly Step[]): Ps {
  const durations = steps.map(duration);
  // Not Math.max(...durations): a hundred thousand arguments would overflow the stack.
  const longest = durations.reduce((most, ps) => Math.max(most, ps), 0);
  const typical = median(durations);
  return typical > 0 && longest > TALLEST_TO_MEDIAN * typical
    ? CAPPED_TO_MEDIAN * typical
    : longest;
}

const LOW_ENOUGH = 0.85; // of the axis: above such a column a length can be written
const BESIDE_PX = 4;

/** How long the cut columns really are, next to each if the columns and the length before it leave
 * room. */
export function cutLengths(
  columns: readonly StepColumn[],
  columnWidth: number,
  axisEnd: Ps,
  width: number,
  textWidth: (text: string) => number,
): { text: string; left: number }[] {
  const found: { text: string; left: number }[] = [];
  let free = 0;
  columns.forEach(({ step }, index) => {
    if (duration(step) <= axisEnd) return;
    const text = seconds(duration(step));
    const left = (index + 1) * columnWidth + BESIDE_PX;
    const right = left + textWidth(text) + BESIDE_PX;
    const below = columns.slice(index + 1, Math.ceil(right / columnWidth));
    const isLow = below.every((column) => duration(column.step) < axisEnd * LOW_ENOUGH);
    if (left < free || right > width || !isLow) return;
    found.push({ text, left });
    free = right;
  });
  return found;
}

/** "input 61%, compute 30%" */
export function mostly(times: BucketTimes, wholePs: Ps, most = 3): string {
  return largestFirst(times)
    .slice(0, most)
    .map(({ bucket, ps }) => `${bucket} ${percent(ps, wholePs)}`)
    .join(", ");
}

/** What a screen reader says about a column, and the tooltip shows. */
export function describeColumn({ step, firstIndex, lastIndex }: StepColumn): string {
  const kind = step.phase === "validation" ? "validation step" : "step";
  const name =
    firstIndex === lastIndex
      ? `${kind} ${step.index}`
      : `${kind} ${step.index}, the longest of ${counted(lastIndex - firstIndex + 1, "step")}`;
  const spent = mostly(step.buckets_ps, duration(step));
  return `${name}: ${seconds(duration(step))}${spent ? ` (${spent})` : ""}`;
}

// ---------------------------------------------------------------- the window

const LAST_RECORD = "last record: no epoch was finished"; // as in kinds.py

/** The epoch is still running, or was abandoned before its end. */
export function isUnfinished({ verdict, window }: Pick<Report, "verdict" | "window">): boolean {
  return verdict.status === "running" || window.end_source === LAST_RECORD;
}

/** What to call the time that the report divides. */
export function windowName({ verdict, window }: Report): string {
  if (isUnfinished({ verdict, window })) return "So far";
  return window.epoch === null ? "Trace" : "First epoch";
}

const SEEN_SHARE = 0.5; // of the window: with less, a run is never called fine

/** Whether a run without findings may be called fine: most of its training was seen. */
export function mayEnjoy({ verdict, window }: Report): boolean {
  const isSeen = window.epoch !== null && window.covered_ps >= SEEN_SHARE * window.duration_ps;
  return verdict.status === "healthy" && isSeen;
}

// ---------------------------------------------------------------- findings

/** How long the first epoch takes after this one change. */
export function predicted(finding: Finding, nowPs: Ps): Range {
  return {
    low: Math.max(0, nowPs - finding.gain_ps.high),
    high: Math.max(0, nowPs - finding.gain_ps.low),
  };
}

/** Whether its change may save more than it costs, by the figures as shown, which needs a reason. */
export function slowsOtherWork({ lost_ps, gain_ps: { high } }: Finding): boolean {
  return high > lost_ps && seconds(high) !== seconds(lost_ps);
}

/** "saves 1.03–1.29 s in every epoch"; empty if nothing is predicted. */
export function gainSentence(finding: Finding): string {
  const { gain_ps: first, later_gain_ps: later } = finding;
  if (first.high === 0 && later.high === 0) return "";
  const saves = between(first);
  const least = later.low > 0 ? `at least ${seconds(later.low)}` : "an unknown amount";
  const savesLater = finding.later_gain_at_least ? least : between(later);
  if (first.high === 0) return `${savesLater} in each later epoch`;
  if (later.high === 0) return `${saves}, in the first epoch only`;
  if (saves === savesLater) return `${saves} in every epoch`;
  return `${saves}, and ${savesLater} in each later epoch`;
}

/** Changes to make, and what is only worth knowing, both in the report's order. */
export function sortedBySeverity(findings: readonly Finding[]): {
  changes: Finding[];
  notes: Finding[];
} {
  return {
    changes: findings.filter(({ severity }) => severity !== "note"),
    notes: findings.filter(({ severity }) => severity === "note"),
  };
}

/** "shuffle fill 4.50 s"; an instant has no duration. */
export function evidenceLabel(evidence: Evidence): string {
  const ps = duration(evidence);
  return ps > 0 ? `${evidence.label} ${seconds(ps)}` : evidence.label;
}

/** "4.50 s at 270 ms": which one it is among others with the same label. */
export function evidenceTime(evidence: Evidence): string {
  const ps = duration(evidence);
  return `${ps > 0 ? `${seconds(ps)} ` : ""}at ${seconds(evidence.start_ps)}`;
}

/** With the index that each has in the finding. */
export function groupedByLabel(
  evidence: readonly Evidence[],
): Map<string, { evidence: Evidence; index: number }[]> {
  const groups = new Map<string, { evidence: Evidence; index: number }[]>();
  evidence.forEach((one, index) => {
    const group = groups.get(one.label) ?? [];
    groups.set(one.label, [...group, { evidence: one, index }]);
  });
  return groups;
}

// ---------------------------------------------------------------- comparing two runs

export interface ComparedBucket {
  bucket: Bucket;
  before: Ps;
  after: Ps;
}

export interface Extent {
  durationPs: Ps;
  stepPs: Ps;
  steps: number;
  /** Whether its buckets are estimated, because not all was traced. */
  isEstimated: boolean;
}

export interface Comparison {
  buckets: ComparedBucket[];
  before: Extent;
  after: Extent;
  gone: Finding[];
  kept: { before: Finding; after: Finding }[];
  appeared: Finding[];
}

/** `before` is the current run, `after` the one it is compared with. */
export function compare(before: Report, after: Report): Comparison {
  const ofId = (findings: Finding[], id: string) => findings.find((other) => other.id === id);
  const [spentBefore, spentAfter] = [figuresOf(before).buckets_ps, figuresOf(after).buckets_ps];
  return {
    buckets: BUCKETS.map((bucket) => ({
      bucket,
      before: spentBefore[bucket] ?? 0,
      after: spentAfter[bucket] ?? 0,
    })).filter((row) => row.before > 0 || row.after > 0),
    before: extent(before),
    after: extent(after),
    gone: before.findings.filter(({ id }) => !ofId(after.findings, id)),
    kept: before.findings.flatMap((finding) => {
      const same = ofId(after.findings, finding.id);
      return same ? [{ before: finding, after: same }] : [];
    }),
    appeared: after.findings.filter(({ id }) => !ofId(before.findings, id)),
  };
}

function extent(report: Report): Extent {
  const steps = report.steps.filter(({ phase }) => phase === "training");
  return {
    durationPs: report.window.duration_ps,
    stepPs: median(steps.map(duration)),
    steps: steps.length,
    isEstimated: report.estimate !== null,
  };
}

/** "1.49 s (74%) shorter": what the second run saved or lost compared with the first. */
export function comparisonSentence({ before, after }: Comparison): string {
  const saved = before.durationPs - after.durationPs;
  if (saved === 0) return "Both first epochs take the same time.";
  if (saved > 0) {
    return `The first epoch is ${seconds(saved)} (${percent(saved, before.durationPs)}) shorter.`;
  }
  const times = before.durationPs > 0 ? after.durationPs / before.durationPs : 0;
  const ratio = times > 0 ? ` (${times.toFixed(1)} times as long)` : "";
  return `The first epoch is ${seconds(-saved)} longer${ratio}.`;
}

const LEVELS: readonly Note["level"][] = ["error", "warning", "info"];

export function gravestFirst(notes: readonly Note[]): Note[] {
  return [...notes].sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level));
}
