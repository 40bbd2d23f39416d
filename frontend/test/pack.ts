/** Timelines as the back end sends them, of what a test wants the views to see. */

import type { Item, Lane, PackedLane, PackedTimeline, Series, TimelineAnswer } from "../src/types";

export function packed(answer: TimelineAnswer): PackedTimeline {
  return {
    ...answer,
    lanes: answer.lanes.map(packedLane),
    series: answer.series.map(packedSeries),
  };
}

export function packedLane({ items, rows, ...lane }: Lane): PackedLane {
  const ofRows = Array.from({ length: rows }, (_, row) => items.filter((item) => item[3] === row));
  const gapBefore = (item: Item, i: number, row: Item[]) => item[0] - (row[i - 1]?.[1] ?? item[0]);
  const divisions = items.map((item) => item[5] ?? []);
  return {
    ...lane,
    rows: ofRows.map((row) => [row.length, row[0]?.[0] ?? 0]),
    gaps: numbers(ofRows.flatMap((row) => row.map(gapBefore))),
    lengths: numbers(items.map(([start, end]) => end - start)),
    names: numbers(items.map(([, , name]) => name)),
    counts: numbers(items.map(([, , , , count]) => count)),
    division: {
      sizes: numbers(divisions.map((parts) => parts.length)),
      names: numbers(divisions.flat().map(([name]) => name)),
      lengths: numbers(divisions.flat().map(([, ps]) => ps)),
    },
  };
}

function packedSeries({ points, ...series }: Series): PackedTimeline["series"][number] {
  const at = points.map(([ps]) => ps);
  const values = Float64Array.from(points, ([, value]) => value ?? NaN);
  return {
    ...series,
    start_ps: at[0] ?? 0,
    gaps: numbers(at.map((ps, i) => ps - (at[i - 1] ?? ps))),
    values: Buffer.from(values.buffer).toString("base64"),
  };
}

function numbers(column: readonly number[]): string {
  const bytes: number[] = [];
  for (let worth = 1; worth <= Math.max(1, ...column); worth *= 256) {
    bytes.push(...column.map((number) => Math.floor(number / worth) % 256));
  }
  return Buffer.from(bytes).toString("base64");
}
