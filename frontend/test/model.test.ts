import { describe, expect, it } from "vitest";
import {
  causesOf,
  compare,
  comparisonSentence,
  describeColumn,
  evidenceLabel,
  evidenceTime,
  gainSentence,
  gravestFirst,
  groupedByLabel,
  heatMap,
  hostOfRun,
  largestFirst,
  median,
  parts,
  predicted,
  stepAxisEnd,
  stepColumns,
} from "../src/model";
import type { Note } from "../src/types";
import { MS, S, evidence, finding, report, step } from "./samples";

describe("buckets", () => {
  it("have one order in bars, and go by size in lists", () => {
    const times = { compute: 3, input: 1, compile: 2, memory: 0 };
    expect(parts(times).map(({ bucket }) => bucket)).toEqual(["input", "compile", "compute"]);
    expect(largestFirst(times).map(({ bucket }) => bucket)).toEqual([
      "compute",
      "compile",
      "input",
    ]);
  });
  it("list their causes, but none below half a percent of the window", () =>
    expect(causesOf(report(), "compile").map(({ cause }) => cause)).toEqual([
      "compile.tracing",
      "compile.instantiate",
    ]));
});

describe("steps", () => {
  const even = Array.from({ length: 100 }, (_, i) => step(i, i * S, (i + 1) * S));

  it("have a column each where there is room", () =>
    expect(stepColumns(even, 500)).toHaveLength(100));
  it("share a column where there is not, and the longest of them is shown", () => {
    const steps = even.with(37, step(37, 37 * S, 37.5 * S)).with(38, step(38, 37.5 * S, 39 * S));
    const columns = stepColumns(steps, 10);
    expect(columns).toHaveLength(10);
    expect(columns[3]).toMatchObject({ firstIndex: 30, lastIndex: 39, step: { index: 38 } });
  });
  it("of an empty epoch are no columns", () => expect(stepColumns([], 10)).toEqual([]));
  it("end the axis at the longest, unless that one would hide the others", () => {
    expect(stepAxisEnd(even)).toBe(S);
    expect(stepAxisEnd([...even, step(100, 0, 50 * S)])).toBe(2.5 * S);
    expect(stepAxisEnd([])).toBe(0);
  });
  it("are described in words", () => {
    const slow = step(3, 0, S, { buckets_ps: { input: 0.75 * S, compute: 0.25 * S } });
    expect(describeColumn({ step: slow, firstIndex: 3, lastIndex: 3 })).toBe(
      "step 3: 1.00 s (input 75 %, compute 25 %)",
    );
    expect(describeColumn({ step: slow, firstIndex: 0, lastIndex: 9 })).toContain(
      "the longest of 10 steps",
    );
  });
  it("have a median", () => {
    expect(median([])).toBe(0);
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
  });
});

describe("a finding", () => {
  const range = (low: number, high: number) => ({ low: low * S, high: high * S });

  it("predicts the first epoch after its change", () =>
    expect(predicted(finding(), 10 * S)).toEqual(range(8, 9)));
  it.each([
    [range(1, 2), range(0, 0), "1.00–2.00 s, in the first epoch only"],
    [range(1, 2), range(1, 2), "1.00–2.00 s, in every epoch"],
    [range(1, 2), range(1, 1), "1.00–2.00 s, and 1.00 s in each later epoch"],
    [range(0, 0), range(1, 1), "1.00 s in each later epoch"],
    [range(0, 0), range(0, 0), ""],
  ])("says which epochs win", (gain_ps, later_gain_ps, text) =>
    expect(gainSentence(finding({ gain_ps, later_gain_ps }))).toBe(text),
  );
  it("labels its evidence with what it took, and an instant without", () => {
    expect(evidenceLabel(evidence({ end_ps: 4.5 * S, label: "shuffle fill" }))).toBe(
      "shuffle fill 4.50 s",
    );
    expect(evidenceLabel(evidence({ end_ps: 0, label: "loss became NaN" }))).toBe(
      "loss became NaN",
    );
  });
});

it("evidence of the same kind is told apart by its time", () => {
  const at = (start: number, label: string) =>
    evidence({ start_ps: start * S, end_ps: (start + 1) * S, label });
  const groups = groupedByLabel([at(1, "wait"), at(2, "tracing"), at(4, "wait")]);
  expect([...groups.keys()]).toEqual(["wait", "tracing"]);
  expect(groups.get("wait")!.map(({ index }) => index)).toEqual([0, 2]);
  expect(evidenceTime(at(4, "wait"))).toBe("1.00 s at 4.00 s");
});

describe("comparing two runs", () => {
  const before = report({ findings: [finding(), finding({ id: "ST001" })] });
  const after = report({
    window: { ...report().window, duration_ps: 4 * S },
    buckets_ps: { compute: 4 * S },
    steps: [step(0, 0, 100 * MS)],
    findings: [finding({ id: "ST001" }), finding({ id: "ST401" })],
  });
  const comparison = compare(before, after);

  it("sets every bucket that either has side by side", () =>
    expect(comparison.buckets).toEqual([
      { bucket: "input", before: 3 * S, after: 0 },
      { bucket: "compile", before: 5 * S, after: 0 },
      { bucket: "compute", before: 2 * S, after: 4 * S },
    ]));
  it("sorts findings into gone, kept and new", () => {
    expect(comparison.gone.map(({ id }) => id)).toEqual(["ST104"]);
    expect(comparison.kept.map(({ after: { id } }) => id)).toEqual(["ST001"]);
    expect(comparison.appeared.map(({ id }) => id)).toEqual(["ST401"]);
  });
  it("sums up in a sentence", () => {
    expect(comparisonSentence(comparison)).toBe("The first epoch is 6.00 s (60 %) shorter.");
    expect(comparisonSentence(compare(after, before))).toBe(
      "The first epoch is 6.00 s longer (2.5 times as long).",
    );
    expect(comparisonSentence(compare(after, after))).toContain("same time");
  });
  it("compares median steps", () => expect(comparison.after.stepPs).toBe(100 * MS));
});

it("the host whose time is the run's is known by its buckets", () => {
  const ledger = (host: string, compute: number) => ({
    host,
    buckets_ps: { compute, input: 0 },
    covered_ps: compute,
  });
  const run = report({
    buckets_ps: { compute: 5 },
    host_ledgers: [ledger("a", 4), ledger("b", 5)],
  });
  expect(hostOfRun(run)).toBe("b");
  expect(hostOfRun(report({ host_ledgers: [] }))).toBeNull();
});

it("the heat map has the buckets that some host spent time in, as shares of each host", () => {
  const { buckets, rows } = heatMap([
    { host: "a", buckets_ps: { input: 1, compute: 3 }, covered_ps: 4, training_thread: "python" },
    { host: "b", buckets_ps: { compute: 8 }, covered_ps: 8, training_thread: null },
  ]);
  expect(buckets).toEqual(["input", "compute"]);
  expect(rows[0]!.shares.get("input")).toBe(0.25);
  expect(rows[1]).toMatchObject({ host: "b", trains: false });
});

it("the host that the others waited for longest is the first of the heat map", () => {
  const ledger = (host: string) => ({ host, buckets_ps: { compute: 1 }, covered_ps: 1 });
  const hosts = [
    { host: "a", cost_ps: S, cause: "compile.tracing" },
    { host: "c", cost_ps: 5 * S, cause: "host.python" },
  ];
  const { rows } = heatMap(["a", "b", "c"].map(ledger), { hosts });
  expect(rows.map(({ host }) => host)).toEqual(["c", "a", "b"]);
  expect(rows[0]).toMatchObject({ latePs: 5 * S, lateCause: "host.python" });
});

it("the gravest notes come first, those of one level in their own order", () => {
  const note = (level: Note["level"], text: string): Note => ({ level, text });
  const notes = [note("info", "a"), note("error", "b"), note("info", "c"), note("warning", "d")];
  expect(gravestFirst(notes).map(({ text }) => text)).toEqual(["b", "d", "a", "c"]);
});
