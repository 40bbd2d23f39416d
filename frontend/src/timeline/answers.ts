/** Which of the answers at hand shows a view best, and whether to ask for a better one. Pure. */

import type { Detail } from "../data/source";
import type { Ps, Span } from "../types";

const KEPT = 8; // enough to zoom out again without asking
const GOOD_ENOUGH = 1.5; // times the pixels on the screen
const MARGIN = 0.5; // of the view on each side, so that a small move needs no request

/** The finest of the answers that contain the whole view; `details[0]` contains everything. */
export function bestFor(details: readonly Detail[], view: Span): Detail | null {
  let best: Detail | null = details[0] ?? null;
  for (const detail of details) {
    if (best && holds(detail.answer, view) && detail.psPerPixel < best.psPerPixel) best = detail;
  }
  return best;
}

/** Compared to the picosecond: a view is computed in floating point, and may miss the edge by less. */
function holds(outer: Span, inner: Span): boolean {
  return outer.start_ps <= inner.start_ps + 1 && inner.end_ps <= outer.end_ps + 1;
}

export function isGoodEnough(detail: Detail | null, psPerPixel: Ps): boolean {
  return detail !== null && detail.psPerPixel <= psPerPixel * GOOD_ENOUGH;
}

/** The view with a margin on both sides, inside the window. */
export function requestFor(view: Span, windowPs: Ps): Span {
  const margin = (view.end_ps - view.start_ps) * MARGIN;
  return {
    start_ps: Math.max(0, view.start_ps - margin),
    end_ps: Math.min(windowPs, view.end_ps + margin),
  };
}

/** The answer for the whole window stays first; the oldest of the others is dropped. */
export function kept(details: readonly Detail[], detail: Detail): Detail[] {
  const [whole, ...others] = details;
  return whole ? [whole, ...others.slice(-(KEPT - 2)), detail] : [detail];
}
