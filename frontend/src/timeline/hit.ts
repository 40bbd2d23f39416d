/** What is under the pointer. Pure. */

import type { Item } from "../types";
import { type Layout, type LaneBox, type SeriesBox, rowAt } from "./layout";
import { visibleOfRow } from "./rows";
import type { Scale } from "./view";

const NEAR_PX = 3; // an interval thinner than a pixel can still be hit

export type Hovered =
  | { kind: "item"; box: LaneBox; item: Item }
  | { kind: "point"; box: SeriesBox; ps: number; value: number | null };

export function hoveredAt(layout: Layout, scale: Scale, x: number, y: number): Hovered | null {
  const box = layout.boxes.find(({ top, height }) => top <= y && y < top + height);
  if (!box) return null;
  return box.kind === "lane" ? itemAt(box, scale, x, y) : pointAt(box, scale, x);
}

function itemAt(box: LaneBox, scale: Scale, x: number, y: number): Hovered | null {
  const near = { start_ps: scale.ps(x - NEAR_PX), end_ps: scale.ps(x + NEAR_PX) };
  const [from, to] = visibleOfRow(box.lane, rowAt(box, y), near);
  let nearest: Item | null = null;
  let distance = NEAR_PX;
  for (let i = from; i < to; i++) {
    const item = box.lane.items[i]!;
    const away = Math.max(scale.x(item[0]) - x, x - scale.x(item[1]), 0);
    if (away < distance) [nearest, distance] = [item, away];
    if (away === 0) break;
  }
  return nearest && { kind: "item", box, item: nearest };
}

function pointAt(box: SeriesBox, scale: Scale, x: number): Hovered | null {
  let nearest: SeriesBox["series"]["points"][number] | null = null;
  let distance = Infinity;
  for (const point of box.series.points) {
    const away = Math.abs(scale.x(point[0]) - x);
    if (away < distance) [nearest, distance] = [point, away];
  }
  return nearest && { kind: "point", box, ps: nearest[0], value: nearest[1] };
}
