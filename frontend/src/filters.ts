/** Which runs are listed: those with one verdict, bucket, finding or day, or with some words. Pure. */

import { utc } from "./format";
import { BUCKETS } from "./palette";
import { STATUS_ORDER, STATUS_WORDS, spoken } from "./words";
import type { RunSummary, Status } from "./types";

export const FACETS = ["status", "bucket", "finding", "day"] as const;
export type Facet = (typeof FACETS)[number];

/** What the listed runs have in common; nothing if all are listed. */
export type Only = Partial<Record<Facet | "text", string>>;

/** As in a link: `status:slow_once;finding:ST104;text:resnet`. A text may contain anything. */
export function onlyFromLink(link: string | null): Only {
  const only: Only = {};
  const [, facets = "", text] = /^(.*?)(?:(?<=^|;)text:(.*))?$/s.exec(link ?? "") ?? [];
  for (const part of facets.split(";")) {
    const [, facet, value] = /^(status|bucket|finding|day):(.+)$/.exec(part) ?? [];
    if (facet && value) only[facet as Facet] = value;
  }
  if (text) only.text = text;
  return only;
}

export function linkTo(only: Only): string | null {
  const parts = [...FACETS, "text" as const].flatMap((name) =>
    only[name] ? [`${name}:${only[name]}`] : [],
  );
  return parts.join(";") || null;
}

export function runsWith(runs: readonly RunSummary[], only: Only): RunSummary[] {
  const { text, ...facets } = only;
  const wanted = Object.entries(facets) as [Facet, string][];
  const some = runs.filter((run) =>
    wanted.every(([facet, value]) => valuesOf(run, facet).includes(value)),
  );
  return matchingRuns(some, text ?? "");
}

/** Runs whose name, verdict or findings contain every word of the text, ignoring case. */
export function matchingRuns(runs: readonly RunSummary[], text: string): RunSummary[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [...runs];
  return runs.filter(({ run, status, sentence, findings }) => {
    const found = findings?.flatMap(({ id, name, title }) => [id, spoken(name), title]) ?? [];
    const all = [run, status && STATUS_WORDS[status], sentence, ...found].join("\n").toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

function valuesOf(run: RunSummary, facet: Facet): string[] {
  if (facet === "finding") return run.findings?.map(({ id }) => id) ?? [];
  const { status, primary: bucket, started_unix_ns } = run;
  const value = { status, bucket, day: dayOf(started_unix_ns) }[facet];
  return value === null ? [] : [value];
}

export interface Choice {
  value: string;
  words: string;
  /** How many of the runs have it, among those that the other filters leave. */
  count: number;
}

/** What can be chosen for a facet, including what is chosen, even if no run has it. */
export function choicesOf(runs: readonly RunSummary[], only: Only, facet: Facet): Choice[] {
  const { [facet]: chosen, ...others } = only;
  const counts = new Map<string, number>(chosen ? [[chosen, 0]] : []);
  for (const run of runsWith(runs, others)) {
    for (const value of valuesOf(run, facet)) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const found = facet === "finding" ? runs.flatMap(({ findings }) => findings ?? []) : [];
  const names = new Map(found.map(({ id, name }) => [id, `${id} ${spoken(name)}`]));
  const words = (value: string) =>
    names.get(value) ?? (facet === "status" ? STATUS_WORDS[value as Status] : value) ?? value;
  const choices = [...counts].map(([value, count]) => ({ value, words: words(value), count }));
  return choices.sort((a, b) => rank(facet, a) - rank(facet, b) || inOrder(facet, a, b));
}

function rank(facet: Facet, { value, count }: Choice): number {
  if (facet === "status") return STATUS_ORDER.indexOf(value as Status);
  if (facet === "bucket") return (BUCKETS as readonly string[]).indexOf(value);
  return facet === "finding" ? -count : 0;
}

/** Days are listed newest first. */
function inOrder(facet: Facet, a: Choice, b: Choice): number {
  return (facet === "day" ? -1 : 1) * (a.value < b.value ? -1 : 1);
}

/** In UTC, as in the sums by day. */
export function dayOf(unixNs: number | null): string | null {
  return utc(unixNs)?.slice(0, 10) ?? null;
}
