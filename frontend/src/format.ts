/**
 * Picoseconds and shares for people to read. The same rules as in stall_analyzer/format.py, so
 * that the page and the terminal never disagree about a figure.
 */

import type { Ps, Range } from "./types";

export const PS_PER_S = 1e12;
export const PS_PER_MS = 1e9;
const PS_PER_NS = 1e3;

const UNITS: readonly (readonly [Ps, string, number])[] = [
  [PS_PER_NS, "ns", 1000],
  [1e6, "µs", 1000],
  [PS_PER_MS, "ms", 1000],
  [PS_PER_S, "s", 60],
];

/** Three significant digits up to a minute, then two units: 412 ms, 14.2 s, 3 min 12 s. */
export function seconds(ps: Ps): string {
  if (ps === 0) return "0 s";
  if (ps < PS_PER_NS) return "<1 ns";
  for (const [unitPs, unit, limit] of UNITS) {
    const value = ps / unitPs;
    for (const [decimals, below] of [
      [2, 10],
      [1, 100],
      [0, limit],
    ] as const) {
      if (decimals > 0 && unit === "ns") continue; // nothing is measured that finely
      // A unit serves as long as its rounded value stays below the next one: 999.6 ms is 1.00 s.
      if (Number(value.toFixed(decimals)) < Math.min(below, limit)) {
        return `${value.toFixed(decimals)} ${unit}`;
      }
    }
  }
  const whole = Math.round(ps / PS_PER_S);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${padded(whole % 60)} s`;
  const minutes = Math.round(ps / PS_PER_S / 60);
  return `${Math.floor(minutes / 60)} h ${padded(minutes % 60)} min`;
}

function padded(value: number): string {
  return String(value).padStart(2, "0");
}

/** A range, with one unit if possible: 1.03–1.29 s, 850 ms to 1.29 s. */
export function between({ low, high }: Range): string {
  const [shortest, longest] = [seconds(low), seconds(high)];
  if (shortest === longest) return longest;
  if (low === 0) return `up to ${longest}`;
  const [number, unit] = split(shortest);
  const isOneWord = unit !== "" && !unit.includes(" ");
  return isOneWord && split(longest)[1] === unit
    ? `${number}–${longest}`
    : `${shortest} to ${longest}`;
}

/** What is left of an epoch: it is never said to be nothing. */
export function forecast({ low, high }: Range): string {
  return low === 0 ? `at most ${seconds(high)}` : between({ low, high });
}

function split(text: string): [string, string] {
  const space = text.indexOf(" ");
  return [text.slice(0, space), text.slice(space + 1)];
}

/** A share in whole percent that never rounds something to nothing, or a part to all. */
export function percent(part: number, whole: number): string {
  if (whole <= 0 || part <= 0) return "0%";
  if (part >= whole) return "100%";
  const share = (100 * part) / whole;
  if (share < 1) return "<1%";
  if (share > 99) return ">99%";
  return `${share.toFixed(0)}%`;
}

/** A difference with its sign: −412 ms, +1.20 s, no difference. */
export function difference(ps: Ps): string {
  if (ps === 0) return "±0";
  return `${ps < 0 ? "−" : "+"}${seconds(Math.abs(ps))}`;
}

/** A point in time on an axis whose ticks are `stepPs` apart: 1.25 s, 12.250 ms. */
export function tickLabel(ps: Ps, stepPs: Ps): string {
  if (ps === 0) return "0";
  const [unitPs, unit] = [...UNITS].reverse().find(([size]) => Math.abs(ps) >= size) ?? UNITS[0]!;
  const decimals = Math.max(0, Math.ceil(-Math.log10(stepPs / unitPs) - 1e-9));
  return `${(ps / unitPs).toFixed(Math.min(decimals, 9))} ${unit}`;
}

/** A value of a curve: 3 significant digits, no exponent unless it needs one. */
export function figure(value: number, unit = "", digits = 3): string {
  if (unit === "bytes") return size(value);
  const magnitude = Math.abs(value);
  const plain = magnitude === 0 || (magnitude >= 1e-3 && magnitude < 1e5);
  const text = plain ? String(Number(value.toPrecision(digits))) : value.toExponential(1);
  return unit ? `${text} ${unit}` : text;
}

/** The range of a curve, with as many digits as needed to tell the ends apart. */
export function extent(low: number, high: number, unit = ""): string {
  const digits = figure(low, unit) === figure(high, unit) ? 5 : 3;
  const [least, most] = [figure(low, unit, digits), figure(high, unit, digits)];
  return least === most ? most : `${least} to ${most}`;
}

/** Bytes in a suitable unit: 512 kB, 300 MB, 1.5 GB. */
export function size(bytes: number): string {
  for (const [unitBytes, unit] of [
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
  ] as const) {
    if (bytes >= unitBytes) {
      const value = bytes / unitBytes;
      return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
    }
  }
  return `${bytes} bytes`;
}

/** The beginning of a text, if there is no room for more. */
export function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, Math.max(0, most - 1))}…`;
}

/** Names in traces can be a megabyte long; the middle matters least. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  const kept = most - 1;
  return `${text.slice(0, Math.ceil(kept * 0.6))}…${text.slice(text.length - Math.floor(kept * 0.4))}`;
}

/** "1 step", "3 steps" */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

const NS_PER_MS = 1e6;

/** "2026-11-16T22:13:30.000Z"; null if the clock is not known or was never set. */
export function utc(unixNs: number | null): string | null {
  const date = unixNs === null ? null : new Date(unixNs / NS_PER_MS);
  return date && !Number.isNaN(date.getTime()) ? date.toISOString() : null;
}

/** "2026-11-16 22:13:30", in UTC */
export function moment(unixNs: number | null): string | null {
  return utc(unixNs)?.slice(0, 19).replace("T", " ") ?? null;
}
