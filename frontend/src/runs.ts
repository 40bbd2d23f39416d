/** The list of runs: its order, and which one to open first. Pure. */

import type { Progress, RunState, RunSummary, Status } from "./types";

export type SortKey = "run" | "status" | "duration" | "later" | "gain";

/** What needs attention first. */
const STATUS_ORDER: readonly Status[] = [
  "stuck",
  "dead",
  "learning_nothing",
  "slow_always",
  "slow_once",
  "unknown",
  "healthy",
];

const KEYS: Record<SortKey, (run: RunSummary) => number | string> = {
  run: (run) => run.run,
  status: (run) => (run.status ? STATUS_ORDER.indexOf(run.status) : STATUS_ORDER.length),
  duration: (run) => -(run.duration_ps ?? -1),
  later: (run) => -(run.later_epoch_ps ?? -1),
  gain: (run) => -(run.findings?.[0]?.gain_ps?.high ?? -1),
};

/** The most interesting first: the longest, the worst, the one with most to win. */
export function sortedRuns(
  runs: readonly RunSummary[],
  key: SortKey,
  isReversed: boolean,
): RunSummary[] {
  const value = KEYS[key];
  const direction = isReversed ? -1 : 1;
  return [...runs].sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === right) return byName(a, b);
    return direction * (left < right ? -1 : 1);
  });
}

function byName(a: RunSummary, b: RunSummary): number {
  return a.run.localeCompare(b.run, "en", { numeric: true });
}

export function isBusy(runs: readonly RunSummary[]): boolean {
  return runs.some(({ state, progress }) => isUnfinished(state, progress));
}

/** Also a run that is ready, but being read again because its files have grown. */
export function isUnfinished(state: RunState, progress: Progress | null | undefined): boolean {
  return state === "waiting" || state === "running" || (state === "ready" && progress != null);
}

/** One run is opened at once; of several the reader chooses. */
export function firstRun(runs: readonly RunSummary[]): string | null {
  return runs.length === 1 ? runs[0]!.run : null;
}
