/** Runs in progress: what is said about their processes, the late one separately. Pure. */

import { counted } from "./format";
import type { BucketTimes, Live, LiveProcess, RunSummary } from "./types";

export interface LiveLine {
  /** Whose line it is; empty if there is only one process. */
  who: string;
  text: string;
  now: string;
  late: boolean;
  buckets_ps: BucketTimes;
}

/** Late ones first, one by one; the others share a line, that of the first. */
export function liveLines({ processes }: Live): LiveLine[] {
  const [late, others] = [
    processes.filter((one) => one.late),
    processes.filter((one) => !one.late),
  ];
  const first = others[0];
  const who = others.length > 1 ? counted(others.length, "worker") : (first?.name ?? "");
  return [...late.map((one) => line(one, one.name)), ...(first ? [line(first, who)] : [])];
}

function line({ text, now, late, buckets_ps }: LiveProcess, who: string): LiveLine {
  return { who, text, now, late, buckets_ps };
}

/** For a line in the list. */
export function liveInShort(live: Live): string {
  const [first, ...others] = liveLines(live);
  if (!first) return "";
  const late = first.late ? `${first.who} is late: ` : "";
  const waiting = others.find((one) => !one.late);
  const are = live.processes.filter((one) => !one.late).length === 1 ? "is" : "are";
  const rest = first.late && waiting ? `; ${waiting.who} ${are} waiting` : "";
  return live.stall || `${late}${first.text}${rest}`;
}

/** Whether there will be more without anyone doing anything. */
export function goesOn({ live, status }: RunSummary): boolean {
  return live !== null || status === "running";
}
