/** Written by `make schema` from report/document_types.py, which explains it. */

export type Bucket = "input" | "compile" | "memory" | "numerics" | "compute" | "communication" | "host" | "profiler" | "unknown";
export type Severity = "act" | "consider" | "note";
export type Status = "healthy" | "slow_once" | "slow_always" | "learning_nothing" | "stuck" | "dead" | "unknown";
export type Level = "info" | "warning" | "error";
export type PhaseName = "startup" | "training" | "validation" | "epoch_end";
export type StepPhase = "training" | "validation";
export type StepSource = "marker" | "function" | "iterator" | "device" | "capture" | "events";
export type WindowSource = "trace" | "events" | "both";
export type ClockSource = "own clock" | "collectives" | "steps" | "session name" | "none";
export type SizeSource = "TF_CONFIG" | "the collectives" | "the numbers of the workers" | "the files";
export type Ps = number;
export type Count = number;
export type Positive = number;
export type Share = number;
export type FindingId = string;
export type Cause = string;
export type AllBuckets = Required<Partial<Record<Bucket, Ps>>>;
export type BucketTimes = Partial<Record<Bucket, Positive>>;
export type CauseTimes = Record<Cause, Ps>;
export interface Note {
  level: Level;
  text: string;
  where: string;
}
export interface Window {
  start_unix_ns: number | null;
  duration_ps: Ps;
  epoch: Count | null;
  covered_ps: Ps;
  source: WindowSource;
  start_source: string;
  end_source: string;
}
export interface Verdict {
  status: Status;
  primary: Bucket;
  sentence: string;
  confidence: Share;
  host: string | null;
}
export interface Span {
  start_ps: Ps;
  end_ps: Ps;
}
export interface Phase extends Span {
  name: PhaseName;
  buckets_ps: BucketTimes;
}
export interface Step extends Span {
  index: Count;
  phase: StepPhase;
  source: StepSource;
  buckets_ps: BucketTimes;
}
export interface Estimate {
  profiled_steps: Positive;
  steps: Positive;
  estimated_ps: Ps;
  doubt: Share;
  buckets_ps: AllBuckets;
  causes_ps: CauseTimes;
}
export interface LaterEpochs {
  count: Count;
  median_ps: Ps | null;
}
export interface Range {
  low: Ps;
  high: Ps;
}
export interface Forecast extends Range {
  now: Ps;
}
export interface Change {
  text: string;
  before: string;
  after: string;
}
export interface Evidence {
  host: string;
  line: string;
  start_ps: Ps;
  end_ps: Ps;
  label: string;
}
export interface FindingSummary {
  id: FindingId;
  name: string;
  bucket: Bucket;
  severity: Severity;
  title: string;
  lost_ps: Ps;
  gain_ps: Range;
  later_gain_ps: Range;
  confidence: Share;
}
export interface Finding extends FindingSummary {
  estimated: boolean;
  stack: string[];
  explanation: string;
  change: Change;
  evidence: Evidence[];
}
export interface Plan {
  findings: FindingId[];
  first_epoch_ps: Forecast;
  later_epoch_ps: Forecast | null;
}
export interface HostLedger {
  host: string;
  buckets_ps: AllBuckets;
  covered_ps: Ps;
  training_thread: string | null;
  evidence: Record<string, string>;
  notes: Note[];
}
export interface HostClock {
  source: ClockSource;
  shared: Count;
  ahead_ps: number | null;
  error_ps: Ps | null;
}
export interface Trace {
  session: string;
  host: string;
  start_ps: number;
  clock: HostClock;
}
export interface LateHost {
  host: string;
  times: Count;
  late_steps: Count;
  cost_ps: Ps;
  bucket: Bucket | null;
  cause: Cause | null;
  cause_ps: Ps;
  once: boolean;
}
export interface LateStep {
  step: Count | null;
  host: string;
  cost_ps: Ps;
  end_ps: number;
  cause: Cause | null;
}
export interface Lateness {
  meetings: Positive;
  waited_ps: Record<string, Ps>;
  hosts: LateHost[];
  steps: LateStep[];
  steps_left_out: Count;
}
export interface Member {
  name: string;
  traced: boolean;
  captured: boolean;
  steps: Count | null;
  last_unix_ns: number | null;
  ended: string | null;
}
export interface Cluster {
  size: number;
  size_source: SizeSource;
  members: Member[];
  missing: string[];
  ended_first: string | null;
  ended_unix_ns: number | null;
  others_waited_ps: Ps;
}
export interface Report {
  run: string;
  attempt: Positive;
  sessions: string[];
  hosts: string[];
  host: string | null;
  window: Window;
  verdict: Verdict;
  buckets_ps: AllBuckets;
  causes_ps: CauseTimes;
  estimate: Estimate | null;
  one_time_ps: Ps;
  recurring_ps: Ps;
  phases: Phase[];
  steps: Step[];
  outside_steps_ps: BucketTimes;
  later_epochs: LaterEpochs;
  findings: Finding[];
  plan: Plan | null;
  host_ledgers: HostLedger[];
  traces: Trace[];
  lateness: Lateness | null;
  cluster: Cluster | null;
  evidence: Record<string, string>;
  notes: Note[];
}
export interface WorstRun {
  run: string;
  attempt: Positive;
  machine_ps: Ps;
}
export interface CostlyRun extends WorstRun {
  hosts: Positive;
  status: Status;
  primary: Bucket;
  duration_ps: Ps;
  sentence: string;
}
export interface FleetStatus {
  status: Status;
  runs: Positive;
  machine_ps: Ps;
}
export interface FleetFinding {
  id: FindingId;
  name: string;
  bucket: Bucket;
  runs: Positive;
  machine_ps: Ps;
  gain_ps: Range;
  worst: WorstRun;
}
export interface FleetDay {
  day: string | null;
  statuses: Partial<Record<Status, Positive>>;
  lost_ps: Ps;
  buckets_ps: AllBuckets;
}
export interface FleetError {
  run: string;
  attempt: Positive;
  text: string;
}
export interface Fleet {
  runs: Count;
  hosts: Count;
  statuses: FleetStatus[];
  primaries: Partial<Record<Bucket, Positive>>;
  lost_ps: Ps;
  buckets_ps: AllBuckets;
  causes_ps: CauseTimes;
  findings: FleetFinding[];
  costliest_runs: CostlyRun[];
  days: FleetDay[];
  runs_with_errors: Count;
  errors: FleetError[];
}
export interface Excess {
  run: string;
  attempt: Positive;
  limit: string;
  measured: string;
}
export interface Worse {
  run: string;
  attempt: Positive;
  status_before: Status;
  status: Status;
  before_ps: Ps;
  now_ps: Ps;
  grown_ps: Record<string, Ps>;
}
export interface Document {
  schema_version: 1;
  tool_version: string;
  runs: Report[];
  notes: Note[];
  fleet: Fleet | null;
  over_limit: Excess[] | null;
  worse: Worse[] | null;
}
export interface Facts {
  run: string;
  attempt: Positive;
  status: Status;
  primary: Bucket;
  sentence: string;
  confidence: Share;
  duration_ps: Ps;
  covered_ps: Ps;
  source: WindowSource;
  epoch: Count | null;
  started_unix_ns: number | null;
  buckets_ps: AllBuckets;
  causes_ps: CauseTimes;
  one_time_ps: Ps;
  later_epochs: Count;
  later_epoch_ps: Ps | null;
  hosts: string[];
  sessions: string[];
  steps: Count;
  findings: FindingSummary[];
  errors: string[];
}
