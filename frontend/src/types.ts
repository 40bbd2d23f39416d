/**
 * What the back end answers, with its own names: tb_stall_plugin/http_api.md explains the routes,
 * analyzer/stall_analyzer/report/document_types.py a report.
 *
 * All times are picoseconds from the window's start. They fit into a double: 2^53 ps are 2.5 hours
 * to the picosecond, and longer windows lose nothing that a screen could show.
 */

import type { Bucket, Facts, Fleet, Note, Ps, Report, Status, Trace } from "./document";
export type * from "./document";

export interface Span {
  start_ps: Ps;
  end_ps: Ps;
}

export interface Progress {
  share: number;
  text: string;
}

/** If there are very many runs, those that nobody has looked at are "unread". */
export type RunState = "unread" | "waiting" | "running" | "ready" | "failed";

/** A captured run in progress, right now. */
export interface Live {
  /** The one that leads the others first. */
  processes: LiveProcess[];
  /** What holds it up, if nothing has moved for a long time. */
  stall: string;
}

export interface LiveProcess {
  /** The name of its task; empty if there is only one process. */
  name: string;
  /** "epoch 1, step 56 of 200, 71% waiting for input" */
  text: string;
  /** "tracing train_step for 12 s"; empty while steps end. */
  now: string;
  /** Others wait for it. */
  late: boolean;
  /** Of the epoch so far. */
  buckets_ps: Partial<Record<Bucket, Ps>>;
}

/** A verdict that has changed: what it was, and why. */
export interface VerdictChange {
  unix_s: number;
  status: Status;
  sentence: string;
  why: string;
}

/**
 * Everything after `changes` is null until the state is "ready". A run whose files have grown stays
 * ready, with a progress, until it has been read again.
 */
export type RunSummary = {
  run: string;
  state: RunState;
  progress: Progress | null;
  error: string | null;
  live: Live | null;
  /** Of the verdict, the last one first. */
  changes: VerdictChange[];
} & { [Key in keyof Omit<Facts, "run">]: Facts[Key] | null };

export interface RunsAnswer {
  runs: RunSummary[];
  fleet: Fleet;
  problems: Note[];
  /** The log directory that TensorBoard was given. */
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
      /** Of the verdict, the last one first. */
      changes: VerdictChange[];
    }
  | { state: "waiting" | "running"; progress: Progress | null }
  | { state: "failed"; error: string };

/** Which name took how much of a merged interval, largest first. */
export type Division = [nameIndex: number, ps: Ps][];

/**
 * `count` > 1: this many intervals, too short for the requested pixels, were merged. `name` is then
 * the longest one's; in the ledger, `division` has the exact sums.
 */
export type Item = [
  start_ps: Ps,
  end_ps: Ps,
  name: number,
  row: number,
  count: number,
  division?: Division,
];

export type LaneGroup = "attribution" | "training" | "input" | "compile" | "device" | "threads";

export interface Lane {
  id: string;
  title: string;
  group: LaneGroup;
  /** How many rows it has, and how many of them are here. */
  depth: number;
  rows: number;
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
  /** How many there are; not all of their lanes may be included. */
  threads: number;
  series: Series[];
  /** How many pixels it was made for. */
  pixels?: number;
  version: string;
}

/** A column of whole numbers as text: data/packed.ts reads it. */
export type Packed = string;

/** A lane as it is sent. */
export interface PackedLane extends Omit<Lane, "rows" | "items"> {
  /** Of each row that is here: how many items it has, and where the first one starts. */
  rows: [count: number, start_ps: Ps][];
  /** Of each item, row by row: the time since the one before it in its row. */
  gaps: Packed;
  lengths: Packed;
  names: Packed;
  counts: Packed;
  /** Of the ledger, how many parts each item has, and these one after the other. */
  division?: { sizes: Packed; names: Packed; lengths: Packed };
}

export interface PackedSeries extends Omit<Series, "points"> {
  start_ps: Ps;
  gaps: Packed;
  /** Doubles, in base64. */
  values: string;
}

export interface PackedTimeline extends Omit<TimelineAnswer, "lanes" | "series"> {
  lanes: PackedLane[];
  series: PackedSeries[];
}

export type CauseTime = [cause: string, ps: Ps];

/** One event in full. */
export interface EventAnswer extends Span {
  name: string;
  lane: string;
  row: number;
  /** How many begin in the requested range; this is the longest. */
  count: number;
  arguments: [name: string, value: number | string][];
  /** Outermost first. */
  around: string[];
  inside: [name: string, count: number, ps: Ps][];
  /** Where training time went during it. */
  causes: CauseTime[];
}

/** Sums over a stretch. */
export interface RangeAnswer extends Span {
  causes: CauseTime[];
  ops: [name: string, count: number, ps: Ps, ownPs: Ps][];
  /** A tree: each has the index of its parent, or -1. */
  flames: [around: number, name: string, ps: Ps][];
}

export interface Hit extends Span {
  name: string;
  lane: string;
  row?: number;
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

/** What the one-file report contains in its `stall-data` script. */
export interface EmbeddedData {
  runs: RunsAnswer;
  reports: Record<string, ReportAnswer>;
  timelines: Record<string, PackedTimeline[]>;
  manuals: Record<string, ManualPage>;
  /** When it was written. */
  written: string;
}
