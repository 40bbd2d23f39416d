/** Small reports and timelines with round figures. */

import type {
  Evidence,
  Finding,
  Fleet,
  Report,
  RunSummary,
  Step,
  TimelineAnswer,
} from "../src/types";

export const S = 1e12;
export const MS = 1e9;

export function evidence(change: Partial<Evidence> = {}): Evidence {
  return { host: "vm", line: "python", start_ps: 0, end_ps: S, label: "tracing", ...change };
}

export function finding(change: Partial<Finding> = {}): Finding {
  return {
    id: "ST104",
    name: "retracing",
    bucket: "compile",
    severity: "act",
    lost_ps: 2 * S,
    gain_ps: { low: S, high: 2 * S },
    later_gain_ps: { low: 0, high: 0 },
    confidence: 0.9,
    title: "train_step is traced 15 times",
    explanation: "Each call brings a new Python number.",
    change: { text: "Pass numbers as tensors.", before: "step(3)", after: "step(tf.constant(3))" },
    evidence: [evidence()],
    ...change,
  };
}

export function step(
  index: number,
  start_ps: number,
  end_ps: number,
  change: Partial<Step> = {},
): Step {
  const buckets_ps = { compute: end_ps - start_ps };
  return { index, start_ps, end_ps, phase: "training", source: "function", buckets_ps, ...change };
}

export function report(change: Partial<Report> = {}): Report {
  return {
    run: "train",
    attempt: 1,
    sessions: ["2026_01_01_00_00_00"],
    hosts: ["vm"],
    window: { start_unix_ns: 0, duration_ps: 10 * S, epoch: 0, covered_ps: 10 * S, source: "both" },
    verdict: { status: "slow_once", primary: "compile", sentence: "Slow once.", confidence: 0.9 },
    buckets_ps: { input: 3 * S, compile: 5 * S, compute: 2 * S },
    causes_ps: {
      "compile.tracing": 4 * S,
      "compile.instantiate": S - MS,
      "compile.xla": MS,
      "input.wait": 3 * S,
      "compute.step": 2 * S,
    },
    one_time_ps: 5 * S,
    recurring_ps: 5 * S,
    phases: [],
    steps: [step(0, 0, 5 * S), step(1, 5 * S, 6 * S), step(2, 6 * S, 7 * S)],
    host_ledgers: [],
    later_epochs: { count: 0, median_ps: null },
    findings: [],
    plan: null,
    evidence: {},
    notes: [],
    ...change,
  };
}

export function fleet(change: Partial<Fleet> = {}): Fleet {
  return {
    runs: 2,
    hosts: 5,
    statuses: [{ status: "slow_always", runs: 2, machine_ps: 50 * S }],
    primaries: { input: 2 },
    lost_ps: 30 * S,
    buckets_ps: { input: 30 * S, compute: 20 * S },
    findings: [],
    costliest_runs: [],
    days: [],
    runs_with_errors: 0,
    errors: [],
    ...change,
  };
}

export function summary(run: string, change: Partial<RunSummary> = {}): RunSummary {
  return {
    run,
    state: "ready",
    progress: null,
    error: null,
    status: "healthy",
    primary: "compute",
    sentence: "Healthy.",
    confidence: 0.9,
    duration_ps: S,
    covered_ps: S,
    buckets_ps: { compute: S },
    hosts: ["vm"],
    findings: [],
    later_epoch_ps: null,
    started_unix_ns: 0,
    ...change,
  };
}

export function timeline(change: Partial<TimelineAnswer> = {}): TimelineAnswer {
  return {
    host: "vm",
    start_ps: 0,
    end_ps: 10 * S,
    names: ["input.wait", "compile.tracing", "compute.step"],
    lanes: [
      {
        id: "ledger",
        title: "Causes",
        group: "attribution",
        depth: 1,
        items: [
          [0, 4 * S, 1, 0, 1],
          [4 * S, 5 * S, 0, 0, 1],
          [5 * S, 7 * S, 2, 0, 1],
          [7 * S, 9 * S, 0, 0, 3],
          [9 * S, 10 * S, 0, 0, 1],
        ],
      },
    ],
    series: [],
    version: "1",
    ...change,
  };
}
