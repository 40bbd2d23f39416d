/** The list of runs: its order, which of them, and which one to open first. Pure. */

import { seconds } from "./format";
import { STATUS_ORDER } from "./words";
import type { Progress, RunState, RunSummary, Status } from "./types";

export type SortKey = "run" | "status" | "duration" | "later" | "gain";

/** What to sort by, or null if it is not known. */
const KEYS: Record<SortKey, (run: RunSummary) => number | null> = {
  run: () => null,
  status: ({ status }) => status && STATUS_ORDER.indexOf(status),
  duration: ({ duration_ps }) => longestFirst(duration_ps),
  later: ({ later_epoch_ps }) => longestFirst(later_epoch_ps),
  gain: ({ findings }) => longestFirst(findings?.[0]?.gain_ps.high),
};

function longestFirst(ps: number | null | undefined): number | null {
  return ps ? -ps : null;
}

/**
 * The most interesting first: the longest, the worst, the one with the most to save. Unknown values
 * come last, in either direction.
 */
export function sortedRuns(
  runs: readonly RunSummary[],
  key: SortKey,
  isReversed: boolean,
): RunSummary[] {
  const value = KEYS[key];
  const direction = isReversed ? -1 : 1;
  return [...runs].sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === right && key === "status") return byGain(a, b) || byName(a, b);
    if (left === right) return (key === "run" ? direction : 1) * byName(a, b);
    if (left === null || right === null) return left === null ? 1 : -1;
    return direction * (left - right);
  });
}

/** Among runs with the same verdict, the one with the most to save. */
function byGain(a: RunSummary, b: RunSummary): number {
  return (KEYS.gain(a) ?? 0) - (KEYS.gain(b) ?? 0);
}

const collator = new Intl.Collator("en", { numeric: true }); // creating one is slow

function byName(a: RunSummary, b: RunSummary): number {
  return collator.compare(a.run, b.run);
}

/** If something is wrong, a line of the list says that, not what could be saved besides. */
const GRAVE: readonly Status[] = ["stuck", "dead", "learning_nothing"];

export function inShort({ status, sentence, findings }: RunSummary): string | null {
  const isGrave = status !== null && GRAVE.includes(status);
  return (isGrave ? null : findings?.[0]?.title) ?? sentence;
}

/** How long it took: `4.20 s`, or `> 4.20 s` if it is not over. */
export function firstEpoch({ duration_ps, status }: RunSummary): string {
  if (!duration_ps) return "–";
  return `${status === "running" ? "> " : ""}${seconds(duration_ps)}`;
}

// ---------------------------------------------------------------- a great many runs

/** Runs per page, and also how many the back end analyzes without being asked. */
export const PAGE_ROWS = 50;

export interface RunsPage {
  rows: RunSummary[];
  /** From 0; always a page that exists, whatever was requested. */
  number: number;
  count: number;
  first: number;
  last: number;
}

export function pageOf(runs: readonly RunSummary[], wanted: number): RunsPage {
  const count = Math.max(1, Math.ceil(runs.length / PAGE_ROWS));
  const number = Math.min(Math.max(wanted, 0), count - 1);
  const rows = runs.slice(number * PAGE_ROWS, (number + 1) * PAGE_ROWS);
  return {
    rows,
    number,
    count,
    first: number * PAGE_ROWS + Math.min(1, rows.length),
    last: number * PAGE_ROWS + rows.length,
  };
}

const NAMES_MOST_CHARACTERS = 4000; // they are part of a URL; the others follow in the next request

/** Which of the runs on the screen have not been read yet. */
export function unreadNames(rows: readonly RunSummary[]): string[] {
  const names: string[] = [];
  let characters = 0;
  for (const { run, state } of rows) {
    if (state !== "unread") continue;
    characters += run.length;
    if (names.length > 0 && characters > NAMES_MOST_CHARACTERS) break;
    names.push(run);
  }
  return names;
}

export function hasUnread(runs: readonly RunSummary[]): boolean {
  return runs.some(({ state }) => state === "unread");
}

/** How many have been read, or could not be. */
export function readCount(runs: readonly RunSummary[]): number {
  return runs.filter(({ state }) => state === "ready" || state === "failed").length;
}

export function isBusy(runs: readonly RunSummary[]): boolean {
  return runs.some(({ state, progress }) => isUnfinished(state, progress));
}

/** Includes a run that is ready, but being read again because its files have grown. */
export function isUnfinished(state: RunState, progress: Progress | null | undefined): boolean {
  return (
    state === "waiting" ||
    state === "running" ||
    (state === "ready" && progress !== null && progress !== undefined)
  );
}

/** A single run is opened at once; if there are several, the reader chooses. */
export function firstRun(runs: readonly RunSummary[]): string | null {
  return runs.length === 1 ? runs[0]!.run : null;
}

/** `.` and `. (attempt 2)` are named after the folder: `logs/run1/` is `run1`. */
export function runName(run: string, logdir: string): string {
  const folder = /([^/\\,:]+)[/\\]*$/.exec(logdir)?.[1];
  return folder && folder !== "." ? run.replace(/^\.(?=$| \()/, () => folder) : run;
}
