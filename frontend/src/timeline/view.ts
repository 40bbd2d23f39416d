/** The part of the window that is on the screen, and how wheel, drag and keys change it. Pure. */

import type { Ps, Span } from "../types";

export const SHORTEST_VIEW_PS: Ps = 1e4; // 10 ns: no trace says anything finer

export function whole(windowPs: Ps): Span {
  return { start_ps: 0, end_ps: windowPs };
}

export function isWhole(view: Span, windowPs: Ps): boolean {
  return view.start_ps <= 0 && view.end_ps >= windowPs;
}

/** Keeps the length where possible, and stays inside the window. */
export function clamped({ start_ps, end_ps }: Span, windowPs: Ps): Span {
  const length = Math.min(Math.max(end_ps - start_ps, SHORTEST_VIEW_PS), windowPs);
  const start = Math.min(Math.max(start_ps, 0), windowPs - length);
  return { start_ps: start, end_ps: start + length };
}

/** `at` is the share of the width that stays where it is; a factor below 1 shows more detail. */
export function zoomed(view: Span, at: number, factor: number, windowPs: Ps): Span {
  const length = view.end_ps - view.start_ps;
  const wanted = Math.min(Math.max(length * factor, SHORTEST_VIEW_PS), windowPs);
  const fixed = view.start_ps + at * length;
  return clamped({ start_ps: fixed - at * wanted, end_ps: fixed + (1 - at) * wanted }, windowPs);
}

/** Moves by a share of what is shown. */
export function panned(view: Span, share: number, windowPs: Ps): Span {
  const by = (view.end_ps - view.start_ps) * share;
  return clamped({ start_ps: view.start_ps + by, end_ps: view.end_ps + by }, windowPs);
}

/** A view between two others; `progress` goes from 0 to 1. */
export function onTheWay(from: Span, to: Span, progress: number): Span {
  const eased = 1 - (1 - progress) ** 3;
  return {
    start_ps: from.start_ps + (to.start_ps - from.start_ps) * eased,
    end_ps: from.end_ps + (to.end_ps - from.end_ps) * eased,
  };
}

/** Round numbers, about `most` of them: 1, 2 or 5 times a power of ten apart. */
export function ticks(view: Span, most: number): { stepPs: Ps; at: Ps[] } {
  const rough = (view.end_ps - view.start_ps) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const stepPs = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const first = Math.ceil(view.start_ps / stepPs);
  const last = Math.floor(view.end_ps / stepPs);
  return { stepPs, at: Array.from({ length: last - first + 1 }, (_, i) => (first + i) * stepPs) };
}

/** Maps times to pixels and back. */
export class Scale {
  private readonly perPs: number;

  constructor(
    readonly view: Span,
    readonly width: number,
  ) {
    this.perPs = width / (view.end_ps - view.start_ps);
  }

  x(ps: Ps): number {
    return (ps - this.view.start_ps) * this.perPs;
  }

  ps(x: number): Ps {
    return this.view.start_ps + x / this.perPs;
  }

  get psPerPixel(): Ps {
    return 1 / this.perPs;
  }
}
