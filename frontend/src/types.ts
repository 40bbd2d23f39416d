/**
 * What the back end answers, in its own words: tb_stall_plugin/http_api.md for the routes,
 * analyzer/stall_analyzer/report/schema.json for a report.
 *
 * All times are picoseconds from the window's start. They fit into a double: 2^53 ps are 2.5 hours
 * to the picosecond, and longer windows lose nothing that a screen could show.
 */

export type Ps = number;

export const BUCKETS = [
  "input",
  "compile",
  "memory",
  "numerics",
  "compute",
  "communication",
  "host",
  "profiler",
  "unknown",
] as const;
export type Bucket = (typeof BUCKETS)[number];
export type BucketTimes = Partial<Record<Bucket, Ps>>;

export type Status =
  "healthy" | "slow_once" | "slow_always" | "learning_nothing" | "stuck" | "dead" | "unknown";
export type Severity = "act" | "consider" | "note";

export interface Range {
  low: Ps;
  high: Ps;
}

export interface Forecast extends Range {
  now: Ps;
}

export interface Note {
  level: "info" | "warning" | "error";
  text: string;
  where?: string;
}

// ---------------------------------------------------------------- the report of one run

export interface Span {
  start_ps: Ps;
  end_ps: Ps;
}

export interface Step extends Span {
  index: number;
  phase: string;
  source: string;
  buckets_ps: BucketTimes;
}

export interface Phase extends Span {
  name: string;
  buckets_ps: BucketTimes;
}

export interface Evidence extends Span {
  host: string;
  line: string;
  label: string;
}

export interface Change {
  text: string;
  before?: string;
  after?: string;
}

export interface Finding {
  id: string;
  name: string;
  bucket: Bucket;
  severity: Severity;
  lost_ps: Ps;
  gain_ps: Range;
  later_gain_ps: Range;
  confidence: number;
  /** Its times are scaled from samples to the whole epoch. */
  estimated?: boolean;
  title: string;
  explanation: string;
  change: Change;
  evidence: Evidence[];
}

export interface Plan {
  findings: string[];
  first_epoch_ps: Forecast;
  later_epoch_ps: Forecast | null;
}

export interface HostLedger {
  host: string;
  buckets_ps: BucketTimes;
  covered_ps: Ps;
  training_thread?: string | null;
}

/** What hosts waited for each other, where several were traced. */
export interface Lateness {
  hosts: { host: string; cost_ps: Ps; cause: string | null }[];
}

/** Of an epoch that was profiled in samples: what all of it probably went to. */
export interface Estimate {
  profiled_steps: number;
  steps: number;
  buckets_ps: BucketTimes;
}

export interface Window {
  start_unix_ns: number | null;
  duration_ps: Ps;
  epoch: number | null;
  covered_ps: Ps;
  source: "trace" | "events" | "both";
  start_source?: string;
  end_source?: string;
}

export interface Verdict {
  status: Status;
  primary: Bucket;
  sentence: string;
  confidence: number;
}

export interface Report {
  run: string;
  attempt: number;
  sessions: string[];
  hosts: string[];
  window: Window;
  verdict: Verdict;
  buckets_ps: BucketTimes;
  causes_ps: Record<string, Ps>;
  estimate?: Estimate | null;
  one_time_ps: Ps;
  recurring_ps: Ps;
  phases: Phase[];
  steps: Step[];
  host_ledgers: HostLedger[];
  lateness?: Lateness | null;
  later_epochs: { count: number; median_ps: Ps | null };
  findings: Finding[];
  plan: Plan | null;
  evidence: Record<string, string>;
  notes: Note[];
}

// ---------------------------------------------------------------- the routes

export interface Progress {
  share: number;
  text: string;
}

/** Of a great many runs, those that nobody has looked at are "unread". */
export type RunState = "unread" | "waiting" | "running" | "ready" | "failed";

export interface FindingSummary {
  id: string;
  name: string;
  severity: Severity;
  title: string;
  gain_ps: Range;
}

/**
 * Everything after `error` is null until the state is "ready". A run whose files have grown stays
 * ready, with a progress, until it has been read again.
 */
export interface RunSummary {
  run: string;
  state: RunState;
  progress: Progress | null;
  error: string | null;
  status: Status | null;
  primary: Bucket | null;
  sentence: string | null;
  confidence: number | null;
  duration_ps: Ps | null;
  covered_ps: Ps | null;
  buckets_ps: BucketTimes | null;
  hosts: string[] | null;
  findings: FindingSummary[] | null;
  later_epoch_ps: Ps | null;
  started_unix_ns: number | null;
}

/** Sums over all runs with a result. `machine_ps` counts each host of a run. */
export interface Fleet {
  runs: number;
  hosts: number;
  statuses: { status: Status; runs: number; machine_ps: Ps }[];
  /** In how many runs a bucket costs most. */
  primaries: Partial<Record<Bucket, number>>;
  lost_ps: Ps;
  buckets_ps: BucketTimes;
  findings: FleetFinding[];
  costliest_runs: CostlyRun[];
  /** In order; `day` in UTC, null for runs without a clock. */
  days: FleetDay[];
  runs_with_errors: number;
  errors: { run: string; text: string }[];
}

export interface FleetFinding {
  id: string;
  name: string;
  bucket: Bucket;
  runs: number;
  machine_ps: Ps;
  gain_ps: Range;
  worst: { run: string };
}

export interface CostlyRun {
  run: string;
  machine_ps: Ps;
  hosts: number;
  status: Status;
  primary: Bucket;
  sentence: string;
}

export interface FleetDay {
  day: string | null;
  statuses: Partial<Record<Status, number>>;
  lost_ps: Ps;
  buckets_ps: BucketTimes;
}

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

/** Where one host's trace lies in the window; for links into the trace viewer. */
export interface TraceOrigin {
  session: string;
  host: string;
  start_ps: Ps;
}

export type ReportAnswer =
  | {
      state: "ready";
      version: string;
      report: Report;
      traces?: TraceOrigin[];
      /** Not null while files that have grown are read again. */
      progress?: Progress | null;
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
