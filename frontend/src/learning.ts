/** How a run learned, as a chart: which runs show it, and its axes. Pure. */

import { figure } from "./format";
import type { Learning, Report } from "./types";

/** On the first screen only if learning is the problem. */
export function isAboutLearning({ verdict, findings, learning }: Report): boolean {
  if (!learning) return false;
  const isBlamed = findings.some(
    ({ bucket, severity }) => bucket === "numerics" && severity !== "note",
  );
  return verdict.status === "learning_nothing" || verdict.primary === "numerics" || isBlamed;
}

export interface Axis {
  low: number;
  high: number;
  isLog: boolean;
  ticks: number[];
}

/** With as many decimals as needed to tell the ticks of the axis apart. */
export function tickText({ ticks, isLog }: Axis, tick: number): string {
  const step = Math.abs((ticks[1] ?? 1) - (ticks[0] ?? 0));
  if (isLog || step >= 1 || Math.abs(tick) >= 1e5) return figure(tick);
  const decimals = Math.ceil(-Math.log10(step) - 1e-9);
  return decimals > 6 ? figure(tick, "", 6) : tick.toFixed(decimals);
}

const LOG_FROM = 50; // times the lowest value: on a linear axis, all but the peak would be flat
const TICKS = 5;

/** From the lowest to the highest value, with round numbers on it. */
export function axisOf(values: readonly number[]): Axis {
  const low = values.reduce((least, value) => Math.min(least, value), Infinity);
  const high = values.reduce((most, value) => Math.max(most, value), -Infinity);
  if (values.length === 0) return { low: 0, high: 1, isLog: false, ticks: [0, 1] };
  if (low > 0 && high / low >= LOG_FROM) return logAxis(low, high);
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  const ticks = roundNumbers(low - room, high + room, TICKS);
  return { low: low - room, high: high + room, isLog: false, ticks };
}

function logAxis(low: number, high: number): Axis {
  const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const step = Math.max(1, Math.ceil((to - from) / TICKS));
  const powers: number[] = [];
  for (let power = from; power <= to; power += step) powers.push(10 ** power);
  return { low: 10 ** from, high: 10 ** to, isLog: true, ticks: powers };
}

/** 1, 2 or 5 times a power of ten apart. */
export function roundNumbers(low: number, high: number, most: number): number[] {
  const rough = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) =>
    Number(((first + i) * step).toPrecision(12)),
  );
}

/** Where a value is on the axis: 0 at its low end, 1 at its high end. */
export function share({ low, high, isLog }: Axis, value: number): number {
  if (isLog) return Math.log(value / low) / Math.log(high / low);
  return high > low ? (value - low) / (high - low) : 0.5;
}

/** "The loss ends at 2.31. A constant guess (the best constant answer) would have a loss of 2.30." */
export function learningSentence({ loss, baseline, baseline_words, per }: Learning): string {
  const lost = loss.find(({ value }) => value === null);
  const last = loss.at(-1)?.value ?? null;
  const end = lost
    ? `The loss is NaN or infinite from ${per} ${lost.at} on.`
    : last === null
      ? ""
      : `The loss ends at ${figure(last)}.`;
  if (baseline === null || !baseline_words) return end;
  return `${end} A constant guess (${baseline_words}) would have a loss of ${figure(baseline)}.`.trim();
}

export interface LayerBar {
  layer: string;
  /** The median of its norms; null if none is a number. */
  norm: number | null;
  /** The width of the bar, on a logarithmic axis. */
  width: number;
  isLost: boolean;
}

const SMALLEST_SHARE = 0.02; // a bar that can still be seen

/** The usual gradient of each layer, in the model's order; widths are logarithmic. */
export function layerBars({ gradients }: Learning): LayerBar[] {
  const norms = gradients.map(({ norms: points }) => {
    const values = points.flatMap(({ value }) => (value !== null && value > 0 ? [value] : []));
    return values.length > 0 ? values.sort((a, b) => a - b)[values.length >> 1]! : null;
  });
  const known = norms.filter((norm) => norm !== null);
  const axis = known.length > 0 ? logAxis(Math.min(...known), Math.max(...known)) : null;
  return gradients.map(({ layer, norms: points }, index) => {
    const norm = norms[index]!;
    const width = axis && norm !== null ? Math.max(share(axis, norm), SMALLEST_SHARE) : 0;
    return { layer, norm, width, isLost: points.some(({ value }) => value === null) };
  });
}
