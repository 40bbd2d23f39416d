/**
 * Sums over a stored timeline, if there is no back end: as fine as its items are. Pure.
 */

import type {
  CauseTime,
  EventAnswer,
  Item,
  Lane,
  Ps,
  RangeAnswer,
  Span,
  TimelineAnswer,
} from "../types";

const SUMMED_GROUPS: readonly Lane["group"][] = ["training", "device", "threads"];
const NO_EVENTS: readonly string[] = ["phases", "steps"];

export function storedEvent(
  answer: TimelineAnswer,
  { lane: id, row, ...span }: Span & { lane: string; row: number },
): EventAnswer | null {
  const lane = answer.lanes.find((one) => one.id === id);
  const item = lane?.items.find(([start, , , its]) => its === row && start >= span.start_ps);
  if (!lane || !item || item[0] >= span.end_ps) return null;
  const [start_ps, end_ps, name, , count] = item;
  const around = lane.items
    .filter(([start, end, , its]) => its < row && start <= start_ps && end >= end_ps)
    .map(([, , outer]) => answer.names[outer] ?? "");
  return {
    name: answer.names[name] ?? "",
    lane: id,
    row,
    start_ps,
    end_ps,
    count,
    arguments: [],
    around,
    inside: [],
    causes: causesIn(answer, { start_ps, end_ps }),
  };
}

export function storedRange(answer: TimelineAnswer, { start_ps, end_ps }: Span): RangeAnswer {
  const span = { start_ps, end_ps };
  const found = new Map<string, [count: number, ps: Ps]>();
  for (const lane of answer.lanes) {
    if (!SUMMED_GROUPS.includes(lane.group) || NO_EVENTS.includes(lane.id)) continue;
    for (const item of lane.items) {
      const ps = within(item, span);
      if (ps <= 0) continue;
      const name = answer.names[item[2]] ?? "";
      const [count, sum] = found.get(name) ?? [0, 0];
      found.set(name, [count + item[4], sum + ps]);
    }
  }
  const ops = [...found].map(([name, [count, ps]]): RangeAnswer["ops"][number] => [
    name,
    count,
    ps,
    ps,
  ]);
  ops.sort((a, b) => b[2] - a[2]);
  return { ...span, causes: causesIn(answer, span), ops, flames: [] };
}

/** Causes of the ledger, largest first. */
function causesIn(answer: TimelineAnswer, span: Span): CauseTime[] {
  const sums = new Map<string, Ps>();
  for (const item of answer.lanes.find(({ id }) => id === "ledger")?.items ?? []) {
    const inside = within(item, span);
    if (inside <= 0) continue;
    const share = inside / (item[1] - item[0]);
    for (const [name, ps] of item[5] ?? [[item[2], item[1] - item[0]] as const]) {
      const cause = answer.names[name] ?? "";
      sums.set(cause, (sums.get(cause) ?? 0) + ps * share);
    }
  }
  return [...sums].sort((a, b) => b[1] - a[1]);
}

function within([start, end]: Item, { start_ps, end_ps }: Span): Ps {
  return Math.min(end, end_ps) - Math.max(start, start_ps);
}
