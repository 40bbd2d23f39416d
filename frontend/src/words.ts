/** The page's own words for the words of the report. */

import type { Bucket, LaneGroup, RunState, Severity, Status } from "./types";

export const STATUS_WORDS: Record<Status, string> = {
  healthy: "Healthy",
  slow_once: "Slow once",
  slow_always: "Slow in every epoch",
  learning_nothing: "Learning nothing",
  stuck: "Stuck",
  dead: "Dead",
  running: "Still running",
  unknown: "Unknown",
};

/** What needs attention first. */
export const STATUS_ORDER: readonly Status[] = [
  "stuck",
  "dead",
  "learning_nothing",
  "slow_always",
  "slow_once",
  "running",
  "unknown",
  "healthy",
];

/** What the status means for someone who is waiting. */
export const STATUS_ADVICE: Record<Status, string> = {
  healthy: "The time goes to the model itself.",
  slow_once: "This cost occurs only once: later epochs do not pay for it.",
  slow_always: "Waiting will not help: every epoch pays this cost.",
  learning_nothing: "Steps run, but the model does not improve. Stop the run and fix that first.",
  stuck: "No step has finished for a long time.",
  dead: "The process has stopped writing.",
  running: "No epoch has finished yet: this is about the time so far.",
  unknown: "The logs do not show enough to tell.",
};

/** A shape for each status, so that color is never the only sign. */
export const STATUS_SIGNS: Record<Status, string> = {
  healthy: "✓",
  slow_once: "◔",
  slow_always: "↻",
  learning_nothing: "≈",
  stuck: "■",
  dead: "✕",
  running: "▶",
  unknown: "?",
};

export const BUCKET_MEANINGS: Record<Bucket, string> = {
  input: "waiting for the next batch",
  compile: "waiting for code to be built",
  memory: "waiting for memory",
  numerics: "steps without learning",
  compute: "the model's own work",
  communication: "waiting for other machines",
  host: "Python, callbacks, dispatch",
  profiler: "the measurement itself",
  unknown: "not recorded",
};

export const SEVERITY_WORDS: Record<Severity, string> = {
  act: "Act",
  consider: "Consider",
  note: "Note",
};

export const GROUP_WORDS: Record<LaneGroup, string> = {
  attribution: "", // its only lane has its own name
  training: "Training",
  input: "Input pipeline",
  compile: "Compile",
  device: "Devices",
  threads: "Other threads",
};

export const STATE_WORDS: Record<RunState, string> = {
  unread: "Not read yet",
  waiting: "Waiting for its turn",
  running: "Being analyzed",
  ready: "Ready",
  failed: "Could not be analyzed",
};

/** `input.first_element` -> `first element`; the bucket is shown next to it anyway. */
export function spokenCause(cause: string): string {
  return cause.slice(cause.indexOf(".") + 1).replaceAll("_", " ");
}

export function spoken(name: string): string {
  return name.replaceAll("_", " ");
}
