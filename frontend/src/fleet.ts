/** The sums over all runs, as they are shown. Pure. */

import { counted, percent, seconds } from "./format";
import { parts, total } from "./model";
import { BUCKETS } from "./palette";
import type { Bucket, Fleet, FleetDay, FleetFinding } from "./types";

/** The same sentence as in the terminal (stall_analyzer/batch/view.py). */
export function fleetHeadline(fleet: Fleet): string {
  const { runs, lost_ps, buckets_ps, estimated_runs: estimated } = fleet;
  if (runs === 0) return "No run has been analyzed yet";
  const whole = total(buckets_ps);
  return (
    `${counted(runs, "run")}: ${runs === 1 ? "its first epoch" : "their first epochs"} took ` +
    `${seconds(whole)} of machine time; ${seconds(lost_ps)} of it ` +
    `(${percent(lost_ps, whole)}) was lost.` +
    (estimated > 0 ? ` For ${counted(estimated, "run")}, these times are estimated.` : "")
  );
}

/** Without notes about what was not traced, which cost nothing. */
export function shownFindings({ findings }: Fleet): FleetFinding[] {
  return findings.filter(({ bucket, machine_ps }) => bucket !== "unknown" || machine_ps > 0);
}

export interface Column {
  day: string;
  runs: number;
  healthy: number;
  lostShare: string;
  /** As a share of the highest column. */
  height: number;
  /** Shares of its own column, from the top. */
  segments: { bucket: Bucket; share: number }[];
  /** Whether there is room for the day's name below it. */
  label: boolean;
}

export interface Columns {
  columns: Column[];
  /** Buckets that occur in some column. */
  buckets: Bucket[];
  /** Earlier days for which there is no room. */
  leftOut: number;
}

export const MOST_DAYS = 60;
const LABELS = 10;

export function columnsOf(days: readonly FleetDay[]): Columns {
  const dated = days.flatMap((one) => (one.day === null ? [] : [{ ...one, day: one.day }]));
  const shown = dated.slice(-MOST_DAYS);
  const highest = Math.max(0, ...shown.map(({ buckets_ps }) => total(buckets_ps)));
  const every = Math.ceil(shown.length / LABELS);
  const columns = shown.map(({ day, statuses, lost_ps, buckets_ps }, index) => {
    const whole = total(buckets_ps);
    return {
      day,
      runs: Object.values(statuses).reduce((sum, count) => sum + count, 0),
      healthy: statuses.healthy ?? 0,
      lostShare: percent(lost_ps, whole),
      height: highest > 0 ? whole / highest : 0,
      segments: parts(buckets_ps).map(({ bucket, ps }) => ({ bucket, share: ps / whole })),
      label: index % every === 0,
    };
  });
  return {
    columns,
    buckets: BUCKETS.filter((bucket) => shown.some(({ buckets_ps }) => buckets_ps[bucket])),
    leftOut: dated.length - shown.length,
  };
}
