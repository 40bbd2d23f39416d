/**
 * Deep links. The place in the page is a handful of `p.stall.*` pairs in the hash, next to what
 * TensorBoard itself keeps there: `#stall&p.stall.run=train&p.stall.finding=ST104`.
 */

import type { Ps, Span } from "./types";

export type View = "run" | "runs" | "fleet" | "compare";

export interface Place {
  view: View;
  run: string | null;
  /** The second run of a comparison. */
  other: string | null;
  finding: string | null;
  host: string | null;
  /** Which runs are listed: `finding:ST104`; null for all. */
  only: string | null;
  /** The part of the window that the timeline shows; null for all of it. */
  range: Span | null;
}

export const NOWHERE: Place = {
  view: "run",
  run: null,
  other: null,
  finding: null,
  host: null,
  only: null,
  range: null,
};

/** Another run: it does not have what was looked at in the last one. */
export const ELSEWHERE: Partial<Place> = { finding: null, host: null, range: null };

const PREFIX = "p.stall.";
const TAB = "stall";

export function placeFromHash(hash: string): Place {
  const pairs = new Map(
    segments(hash)
      .filter((segment) => segment.startsWith(PREFIX))
      .map((segment) => {
        const [name = "", value = ""] = segment.slice(PREFIX.length).split("=", 2);
        return [name, decoded(value)];
      }),
  );
  const view = pairs.get("view");
  return {
    view: isView(view) ? view : "run",
    run: pairs.get("run") || null,
    other: pairs.get("with") || null,
    finding: pairs.get("finding") || null,
    host: pairs.get("host") || null,
    only: pairs.get("only") || null,
    range: range(pairs.get("from"), pairs.get("to")),
  };
}

function isView(text: string | undefined): text is View {
  return text === "runs" || text === "fleet" || text === "compare";
}

/** The hash for a place; segments that are not ours stay where they are. */
export function hashForPlace(place: Place, current: string): string {
  const foreign = segments(current).filter((segment) => !segment.startsWith(PREFIX));
  if (foreign.length === 0) foreign.push(TAB);
  const ours: [string, string | null][] = [
    ["run", place.run],
    ["view", place.view === "run" ? null : place.view],
    ["with", place.other],
    ["finding", place.finding],
    ["host", place.host],
    ["only", place.only],
    ["from", place.range && String(Math.round(place.range.start_ps))],
    ["to", place.range && String(Math.round(place.range.end_ps))],
  ];
  const pairs = ours
    .filter(([, value]) => value)
    .map(([name, value]) => `${PREFIX}${name}=${encodeURIComponent(value!)}`);
  return `#${[...foreign, ...pairs].join("&")}`;
}

function segments(hash: string): string[] {
  return hash.replace(/^#/, "").split("&").filter(Boolean);
}

/** A link that is cut off in the middle of an escape is still a link. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

function range(from: string | undefined, to: string | undefined): Span | null {
  const [start_ps, end_ps]: [Ps, Ps] = [Number(from ?? NaN), Number(to ?? NaN)];
  return start_ps >= 0 && end_ps > start_ps && Number.isFinite(end_ps)
    ? { start_ps, end_ps }
    : null;
}
