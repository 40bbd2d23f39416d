/** The event that the reader has chosen, and which ones are next to, above and below it. Pure. */

import type { Item, Ps, Span } from "../types";
import type { LaneBox, Layout } from "./layout";
import { firstFrom, itemsOfRow } from "./rows";
import { clamped } from "./view";

export interface Chosen extends Span {
  lane: string;
  row: number;
}

export type Direction = "left" | "right" | "up" | "down";

export function chosenOf(box: LaneBox, [start_ps, end_ps, , row]: Item): Chosen {
  return { lane: box.id, row, start_ps, end_ps };
}

export function isChosen(chosen: Chosen | null, box: LaneBox, item: Item): boolean {
  return (
    chosen?.lane === box.id &&
    chosen.row === item[3] &&
    chosen.start_ps === item[0] &&
    chosen.end_ps === item[1]
  );
}

/** The next event that way: in the same row, or in the next row or lane that has one. */
export function neighbor(layout: Layout, chosen: Chosen, direction: Direction): Chosen | null {
  const lanes = layout.boxes.filter((box): box is LaneBox => box.kind === "lane");
  const at = lanes.findIndex(({ id }) => id === chosen.lane);
  const box = lanes[at];
  if (!box) return null;
  if (direction === "left" || direction === "right") return beside(box, chosen, direction);
  const by = direction === "down" ? 1 : -1;
  const rows = lanes.flatMap((lane) =>
    Array.from({ length: lane.rows }, (_, row) => ({ lane, row })),
  );
  let place = rows.findIndex(({ lane, row }) => lane === box && row === chosen.row);
  for (place += by; place >= 0 && place < rows.length; place += by) {
    const found = nearest(rows[place]!.lane, rows[place]!.row, chosen);
    if (found) return found;
  }
  return null;
}

function beside(box: LaneBox, chosen: Chosen, direction: "left" | "right"): Chosen | null {
  const { items } = box.lane;
  const [from, to] = itemsOfRow(box.lane, chosen.row);
  const next =
    direction === "right"
      ? firstFrom(items, from, to, ([start]) => start > chosen.start_ps)
      : firstFrom(items, from, to, ([start]) => start >= chosen.start_ps) - 1;
  const item = next >= from && next < to ? items[next] : undefined;
  return item ? chosenOf(box, item) : null;
}

/** The event of a row that is closest to the middle of the chosen one. */
function nearest(box: LaneBox, row: number, { start_ps, end_ps }: Span): Chosen | null {
  const middle = (start_ps + end_ps) / 2;
  const [from, to] = itemsOfRow(box.lane, row);
  const after = firstFrom(box.lane.items, from, to, ([, end]) => end >= middle);
  const candidates = [after - 1, after].filter((index) => index >= from && index < to);
  const away = ([start, end]: Item) => Math.max(start - middle, middle - end, 0);
  const [best] = candidates
    .map((index) => box.lane.items[index]!)
    .sort((a, b) => away(a) - away(b));
  return best ? chosenOf(box, best) : null;
}

/** The view, moved just far enough to show all of the event, or its beginning. */
export function viewAround(view: Span, { start_ps, end_ps }: Span, windowPs: Ps): Span {
  const length = view.end_ps - view.start_ps;
  const margin = length / 10;
  if (start_ps >= view.start_ps && end_ps <= view.end_ps) return view;
  const begin = start_ps < view.start_ps || end_ps - start_ps > length - 2 * margin;
  const start = begin ? start_ps - margin : end_ps + margin - length;
  return clamped({ start_ps: start, end_ps: start + length }, windowPs);
}
