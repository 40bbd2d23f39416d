/**
 * What the back end answers, in its own words: tb_stall_plugin/http_api.md explains the routes,
 * analyzer/stall_analyzer/report/document_types.py a report.
 *
 * All times are picoseconds from the window's start. They fit into a double: 2^53 ps are 2.5 hours
 * to the picosecond, and longer windows lose nothing that a screen could show.
 */

import type { Bucket, Facts, Fleet, Note, Ps, Report, Trace } from "./document";
export type * from "./document";

export interface Span {
  start_ps: Ps;
  end_ps: Ps;
}

export interface Progress {
  share: number;
  text: string;
}

/** Of a great many runs, those that nobody has looked at are "unread". */
export type RunState = "unread" | "waiting" | "running" | "ready" | "failed";

/**
 * Everything after `error` is null until the state is "ready". A run whose files have grown stays
 * ready, with a progress, until it has been read again.
 */
export type RunSummary = {
  run: string;
  state: RunState;
  progress: Progress | null;
  error: string | null;
} & { [Key in keyof Omit<Facts, "run">]: Facts[Key] | null };

export interface RunsAnswer {
  runs: RunSummary[];
  fleet: Fleet;
  problems: Note[];
  /** What TensorBoard was given. */
  logdir: string;
  /** The lines of code that capture a first epoch. */
  capture: string;
  profile_plugin: boolean;
  version: string;
}

export type ReportAnswer =
  | {
      state: "ready";
      version: string;
      report: Report;
      traces: Trace[];
      /** Not null while files that have grown are read again. */
      progress: Progress | null;
    }
  | { state: "waiting" | "running"; progress: Progress | null }
  | { state: "failed"; error: string };

/** Which name took how much of a merged interval, largest first. */
export type Division = [nameIndex: number, ps: Ps][];

/**
 * `count` > 1: so many intervals, too short for the pixels asked for, became this one. `name` is
 * then the longest one's; in the ledger `division` tells exactly what they came to.
 */
export type Item = [
  start_ps: Ps,
  end_ps: Ps,
  name: number,
  row: number,
  count: number,
  division?: Division,
];

export type LaneGroup = "attribution" | "training" | "input" | "compile" | "device";

export interface Lane {
  id: string;
  title: string;
  group: LaneGroup;
  depth: number;
  items: Item[];
}

export interface Series {
  id: string;
  title: string;
  unit: string;
  points: [Ps, number | null][];
}

export interface TimelineAnswer extends Span {
  host: string;
  names: string[];
  lanes: Lane[];
  series: Series[];
  /** How many pixels it was made for. */
  pixels?: number;
  version: string;
}

export interface Hit extends Span {
  name: string;
  lane: string;
}

export interface SearchAnswer {
  hits: Hit[];
  total: number;
}

export interface ManualPage {
  id: string;
  name: string;
  title: string;
  bucket: Bucket;
  sections: { heading: string; text: string }[];
}

/** What the one-file report carries in its `stall-data` script. */
export interface EmbeddedData {
  runs: RunsAnswer;
  reports: Record<string, ReportAnswer>;
  timelines: Record<string, TimelineAnswer[]>;
  manuals: Record<string, ManualPage>;
}
