/** Several hosts: equal ones share a row, so that the late one stands out. Pure. */

import { counted, percent, seconds, moment } from "./format";
import { median, parts, total } from "./model";
import { BUCKETS } from "./palette";
import type { Bucket, Cluster, HostLedger, Lateness, Member, Ps } from "./types";

/** "worker 1 ended first, at 2026-11-16 22:13:30 UTC; the others waited 1 min 39 s. worker 2 left no records here." */
export function clusterSentence(cluster: Cluster): string {
  const { ended_first: first, missing, others_waited_ps: waitedPs } = cluster;
  const at = moment(cluster.ended_unix_ns);
  const waited = waitedPs > 0 ? `; the others waited ${seconds(waitedPs)}` : "";
  const ended = first && `${first} ended first${at ? `, at ${at} UTC` : ""}${waited}.`;
  const absent =
    missing.length > 0 && `${missing.join(", ")} left no records here${first ? "" : waited}.`;
  return [ended, absent].filter(Boolean).join(" ") || "All members left records here.";
}

export interface HeatRow {
  host: string;
  shares: Map<Bucket, number>;
  trains: boolean;
  /** How long the others waited for it, and what it did in that time. */
  latePs: Ps;
  lateCause: string | null;
}

/**
 * Host × bucket, with only the buckets that some host spent time in. The host that the others
 * waited for longest comes first.
 */
export function heatMap(
  ledgers: readonly HostLedger[],
  lateness: Lateness | null = null,
): { buckets: Bucket[]; rows: HeatRow[] } {
  const late = new Map(lateness?.hosts.map((one) => [one.host, one]));
  const rows = ledgers.map((ledger) => {
    const whole = total(ledger.buckets_ps);
    return {
      host: ledger.host,
      shares: new Map(parts(ledger.buckets_ps).map(({ bucket, ps }) => [bucket, ps / whole])),
      trains: Boolean(ledger.training_thread),
      latePs: late.get(ledger.host)?.cost_ps ?? 0,
      lateCause: late.get(ledger.host)?.cause ?? null,
    };
  });
  rows.sort((a, b) => b.latePs - a.latePs);
  const buckets = BUCKETS.filter((bucket) => rows.some(({ shares }) => shares.has(bucket)));
  return { buckets, rows };
}

// ---------------------------------------------------------------- by exception

const LEAST_ALIKE = 3; // fewer are not worth grouping
const ALIKE = 0.05; // of the window, in each bucket: hosts that do the same differ by this much
const FELT = 0.1; // of what the latest one cost: less is just jitter

/** "63 wait, 1 is late: worker 3, by 1.22 s, because of host.python."; empty if nobody is late. */
export function latenessSentence(rows: readonly HeatRow[]): string {
  const late = rows.filter((row) => isLate(row, rows));
  const [first] = late;
  if (!first) return "";
  const what = first.lateCause ? `, because of ${first.lateCause}` : "";
  const who = late.length === 1 ? `: ${first.host}, by ${seconds(first.latePs)}${what}` : "";
  const are = late.length === 1 ? "is" : "are";
  const waiting = rows.length - late.length;
  return `${waiting} ${waiting === 1 ? "waits" : "wait"}, ${late.length} ${are} late${who}.`;
}

function isLate({ latePs }: HeatRow, rows: readonly HeatRow[]): boolean {
  return latePs > FELT * Math.max(...rows.map((row) => row.latePs));
}

export interface HostGroups {
  /** Hosts that differ, one by one; all hosts if too few are alike. */
  single: HeatRow[];
  /** Hosts that do the same; none if they are too few. */
  alike: HeatRow[];
}

export function byException(rows: readonly HeatRow[], buckets: readonly Bucket[]): HostGroups {
  const usual = new Map(
    buckets.map((bucket) => [bucket, median(rows.map(({ shares }) => shares.get(bucket) ?? 0))]),
  );
  const alike = rows.filter(
    (row) =>
      !isLate(row, rows) &&
      row.trains === rows.at(-1)!.trains &&
      buckets.every(
        (bucket) => Math.abs((row.shares.get(bucket) ?? 0) - usual.get(bucket)!) <= ALIKE,
      ),
  );
  if (alike.length < LEAST_ALIKE) return { single: [...rows], alike: [] };
  return { single: rows.filter((row) => !alike.includes(row)), alike };
}

/** "79%", "78–81%": the share of a bucket on these hosts. */
export function sharesOf(rows: readonly HeatRow[], bucket: Bucket): string {
  const shares = rows.map((row) => row.shares.get(bucket) ?? 0);
  const [low, high] = [percent(Math.min(...shares), 1), percent(Math.max(...shares), 1)];
  return low === high ? high : `${low.replace("%", "")}–${high}`;
}

export interface MemberGroup {
  members: Member[];
  /** "worker 0 … worker 62" if there are several. */
  name: string;
}

/** Members with the same facts share a row; the one that ended first always has its own. */
export function memberGroups({ members, ended_first: first }: Cluster): MemberGroup[] {
  const groups = new Map<string, Member[]>();
  for (const member of members) {
    const { name, steps, ended, traced, captured } = member;
    const key = JSON.stringify([steps, ended, traced, captured, name === first && name]);
    groups.set(key, [...(groups.get(key) ?? []), member]);
  }
  return [...groups.values()]
    .sort((a, b) => a.length - b.length)
    .flatMap((same) =>
      same.length < LEAST_ALIKE
        ? same.map((member) => ({ members: [member], name: member.name }))
        : [{ members: same, name: crowd(same.map(({ name }) => name)) }],
    );
}

/** "63 like host-worker-0" */
export function crowd(names: readonly string[]): string {
  return `${counted(names.length, "host")} like ${names[0]}`;
}
