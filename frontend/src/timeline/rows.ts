/** The items of a lane by row, and those of a row that a view shows, by binary search. Pure. */

import type { Item, Lane, Span } from "../types";

const bounds = new WeakMap<Lane, Int32Array>();

/** Where each row begins in `lane.items`, which are in order of row and start, and the end. */
function boundsOf(lane: Lane): Int32Array {
  let known = bounds.get(lane);
  if (!known) {
    known = new Int32Array(lane.depth + 1).fill(lane.items.length);
    for (let i = lane.items.length - 1; i >= 0; i--) known[lane.items[i]![3]] = i;
    for (let row = lane.depth - 1; row >= 0; row--) {
      known[row] = Math.min(known[row]!, known[row + 1]!);
    }
    bounds.set(lane, known);
  }
  return known;
}

/** Which items a row has: from the first to before the second. */
export function itemsOfRow(lane: Lane, row: number): [from: number, to: number] {
  const known = boundsOf(lane);
  return [known[row] ?? lane.items.length, known[row + 1] ?? lane.items.length];
}

/** The items of a row that reach into the span. */
export function visibleOfRow(lane: Lane, row: number, span: Span): [from: number, to: number] {
  const [from, to] = itemsOfRow(lane, row);
  const first = firstFrom(lane.items, from, to, ([, end]) => end >= span.start_ps);
  return [first, firstFrom(lane.items, first, to, ([start]) => start > span.end_ps)];
}

/** The first of the ordered items that passes; `to` if none does. */
export function firstFrom(
  items: readonly Item[],
  from: number,
  to: number,
  passes: (item: Item) => boolean,
): number {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (passes(items[middle]!)) to = middle;
    else from = middle + 1;
  }
  return from;
}
