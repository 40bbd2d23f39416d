/** What the analyzer says of the sample logs; tests that want round figures change a field. */

import { readFileSync } from "node:fs";
import type {
  EmbeddedData,
  Evidence,
  Finding,
  Fleet,
  Report,
  RunSummary,
  Step,
  TimelineAnswer,
} from "../src/types";
import { unpacked } from "../src/data/packed";
import { DATA } from "./analyze_samples";

export const S = 1e12;
export const MS = 1e9;

export const data: EmbeddedData = JSON.parse(readFileSync(DATA, "utf8"));

export function reportOf(run: string, change: Partial<Report> = {}): Report {
  const answer = data.reports[run]!;
  if (answer.state !== "ready") throw new Error(`${run} is ${answer.state}`);
  return { ...answer.report, ...change };
}

/** A run of which 3% were traced: it took ten seconds, and half of them were probably compile. */
export function partlyTraced(): Report {
  const real = reportOf("compile_tracing");
  const none = Object.fromEntries(Object.keys(real.buckets_ps).map((bucket) => [bucket, 0]));
  const buckets_ps = { ...real.buckets_ps, ...none, compile: 5 * S, compute: 5 * S };
  const range = { low: 4 * S, high: 6 * S };
  return {
    ...real,
    window: { ...real.window, duration_ps: 10 * S, covered_ps: 0.3 * S },
    buckets_ps: { ...buckets_ps, compile: 0, compute: 0.3 * S, unknown: 9.7 * S },
    estimate: {
      buckets_ps,
      causes_ps: { "compile.tracing": 5 * S, "compute.step": 5 * S },
      one_time_ps: 5 * S,
      recurring_ps: 5 * S,
      ranges_ps: { compile: range, compute: range, input: { low: 0, high: 0 } },
      rests_on: ["Steps: 1 profiled of 296."],
      estimated_ps: 9.7 * S,
      profiled_steps: 1,
      steps: 296,
    },
  };
}

export function finding(change: Partial<Finding> = {}): Finding {
  return { ...reportOf("compile_tracing").findings[0]!, ...change };
}

export function evidence(change: Partial<Evidence> = {}): Evidence {
  return { ...finding().evidence[0]!, ...change };
}

export function step(
  index: number,
  start_ps: number,
  end_ps: number,
  change: Partial<Step> = {},
): Step {
  const buckets_ps = { compute: end_ps - start_ps };
  const real = reportOf("healthy").steps[0]!;
  return { ...real, index, start_ps, end_ps, buckets_ps, ...change };
}

export function fleet(change: Partial<Fleet> = {}): Fleet {
  return { ...data.runs.fleet, ...change };
}

/** The healthy run, under another name. */
export function summary(run: string, change: Partial<RunSummary> = {}): RunSummary {
  const real = data.runs.runs.find((one) => one.run === "healthy")!;
  return { ...real, run, ...change };
}

/** With a ledger of ten seconds. */
export function timeline(change: Partial<TimelineAnswer> = {}): TimelineAnswer {
  const real = unpacked(data.timelines["healthy"]![0]!);
  const ledger = real.lanes.find(({ id }) => id === "ledger")!;
  return {
    ...real,
    end_ps: 10 * S,
    names: ["input.wait", "compile.tracing", "compute.step"],
    lanes: [
      {
        ...ledger,
        items: [
          [0, 4 * S, 1, 0, 1],
          [4 * S, 5 * S, 0, 0, 1],
          [5 * S, 7 * S, 2, 0, 1],
          [7 * S, 9 * S, 0, 0, 3],
          [9 * S, 10 * S, 0, 0, 1],
        ],
      },
    ],
    ...change,
  };
}
