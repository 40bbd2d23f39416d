/**
 * Timelines as they are sent: columns of numbers, each as a text. Ten thousand small arrays would take
 * the back end and the browser several times as long. Pure.
 */

import type {
  Division,
  Item,
  Lane,
  Packed,
  PackedLane,
  PackedSeries,
  PackedTimeline,
  Series,
  TimelineAnswer,
} from "../types";

export function unpacked(answer: PackedTimeline): TimelineAnswer {
  return { ...answer, lanes: answer.lanes.map(laneOf), series: answer.series.map(seriesOf) };
}

function laneOf({ rows, gaps, lengths, names, counts, division, ...lane }: PackedLane): Lane {
  const count = sum(rows.map(([itsCount]) => itsCount));
  const columns = [gaps, lengths, names, counts].map((column) => numbers(column, count));
  const [gap, length, name, merged] = columns as [Numbers, Numbers, Numbers, Numbers];
  const divisions = division ? divisionsOf(division, count) : null;
  const items: Item[] = [];
  rows.forEach(([itsCount, start], row) => {
    let at = start;
    for (const last = items.length + itsCount; items.length < last;) {
      const i = items.length;
      const from = at + gap[i]!;
      at = from + length[i]!;
      const parts = divisions?.[i];
      if (parts?.length) items.push([from, at, name[i]!, row, merged[i]!, parts]);
      else items.push([from, at, name[i]!, row, merged[i]!]);
    }
  });
  return { ...lane, rows: rows.length, items };
}

function divisionsOf(
  { sizes, names, lengths }: NonNullable<PackedLane["division"]>,
  count: number,
): Division[] {
  const size = [...numbers(sizes, count)];
  const [name, length] = [names, lengths].map((column) => numbers(column, sum(size)));
  let at = 0;
  return size.map((parts) => {
    const division: Division = [];
    for (const last = at + parts; at < last; at++) division.push([name![at]!, length![at]!]);
    return division;
  });
}

function seriesOf({ start_ps, gaps, values, ...series }: PackedSeries): Series {
  const value = new Float64Array(Uint8Array.from(atob(values), (one) => one.charCodeAt(0)).buffer);
  const gap = numbers(gaps, value.length);
  let at = start_ps;
  const points = Array.from(value, (one, i): Series["points"][number] => {
    at += gap[i]!;
    return [at, Number.isFinite(one) ? one : null];
  });
  return { ...series, points };
}

type Numbers = Float64Array;

/** In base64: the lowest byte of each number, then the next byte of each, and so on. */
function numbers(column: Packed, count: number): Numbers {
  const bytes = atob(column);
  const found = new Float64Array(count);
  for (let at = 0, worth = 1; at < bytes.length; at += count, worth *= 256) {
    for (let i = 0; i < count; i++) found[i]! += bytes.charCodeAt(at + i) * worth;
  }
  return found;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, one) => all + one, 0);
}
