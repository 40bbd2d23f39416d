import { describe, expect, it } from "vitest";
import {
  about,
  bucketRange,
  causesOf,
  compare,
  comparisonSentence,
  cutLengths,
  describeColumn,
  evidenceLabel,
  evidenceTime,
  figuresOf,
  gainSentence,
  gravestFirst,
  groupedByLabel,
  largestFirst,
  mayEnjoy,
  median,
  parts,
  phaseParts,
  phaseTimes,
  predicted,
  slowsOtherWork,
  stepAxisEnd,
  stepColumns,
  tracedShare,
  windowName,
} from "../src/model";
import type { Note } from "../src/types";
import { S, evidence, finding, partlyTraced, reportOf, step } from "./samples";

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
    expect(causesOf(reportOf("compile_tracing"), "host").map(({ cause }) => cause)).toEqual([
      "host.dispatch",
      "host.python",
    ]));
});

describe("the window", () => {
  const report = reportOf("healthy");
  const window = { ...report.window, epoch: null };

  it("is called what it is: an epoch, a trace, or the time so far", () => {
    const verdict = { ...report.verdict, status: "running" as const };
    expect(windowName(report)).toBe("First epoch");
    expect(windowName({ ...report, window })).toBe("Trace");
    expect(windowName({ ...report, verdict })).toBe("So far");
  });
  it("is called well only where training was seen, most of it", () => {
    const little = { ...report.window, covered_ps: report.window.duration_ps / 10 };
    expect(mayEnjoy(report)).toBe(true);
    expect(mayEnjoy({ ...report, window })).toBe(false);
    expect(mayEnjoy({ ...report, window: little })).toBe(false);
  });
});

describe("where the time went", () => {
  const traced = reportOf("compile_tracing");
  const partly = partlyTraced();
  const phase = { ...traced.phases[0]!, start_ps: 7 * S, end_ps: 10 * S };

  it("is the ledger where all was traced, else the estimate", () => {
    expect(figuresOf(traced)).toBe(traced);
    expect(figuresOf(partly)).toBe(partly.estimate);
    expect(causesOf(partly, "compile")).toEqual([{ cause: "compile.tracing", ps: 5 * S }]);
    expect(compare(traced, partly).buckets.find(({ bucket }) => bucket === "compile")).toEqual({
      bucket: "compile",
      before: traced.buckets_ps.compile,
      after: 5 * S,
    });
    expect(compare(traced, partly)).toMatchObject({
      before: { isEstimated: false },
      after: { isEstimated: true },
    });
  });
  it("has a range where it is estimated", () => {
    expect(bucketRange(partly, "compile")).toBe("4.00–6.00 s");
    expect(bucketRange(partly, "input")).toBe("");
    expect(bucketRange(traced, "compile")).toBe("");
  });
  it("says which it is", () => {
    expect(about("5.00 s", true)).toBe("~5.00 s");
    expect(about("5.00 s", false)).toBe("5.00 s");
    expect(tracedShare(partly)).toBe("only 3% of the epoch was traced");
    const never = { ...partly, window: { ...partly.window, covered_ps: 0 } };
    expect(tracedShare(never)).toBe("none of the epoch was traced");
  });
  it("in a phase is as sure as its begin and its end", () => {
    const errors = (...all: number[]) =>
      phaseTimes(all.map((error_ps) => ({ ...phase, error_ps })));
    expect(errors(0, 0)).toEqual(["3.00 s", "3.00 s"]);
    expect(errors(0, S, 0)).toEqual(["3.00 s", "3.00 s ± 1.00 s", "3.00 s ± 1.00 s"]);
  });
  it("in a phase is only what was traced, beside an estimate", () => {
    const times = (buckets_ps: object) => ({ ...phase, buckets_ps });
    expect(phaseParts(times({ unknown: 3 * S }), true)).toBe("not traced");
    expect(phaseParts(times({ unknown: 3 * S }), false)).toBe("unknown 100%");
    expect(phaseParts(times({ unknown: 1.5 * S, compute: 1.5 * S }), true)).toBe(
      "traced 50%: compute 50%",
    );
  });
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
  it("that are cut have their lengths beside them, where these do not run into anything", () => {
    const lengths = (slow: number[], width = 1000) => {
      const steps = even.map((one) => (slow.includes(one.index) ? step(one.index, 0, 9 * S) : one));
      const columns = stepColumns(steps, 100);
      return cutLengths(columns, 10, 2.5 * S, width, (text) => 8 * text.length);
    };
    expect(lengths([3])).toEqual([{ text: "9.00 s", left: 44 }]);
    expect(lengths([3, 40])).toHaveLength(2);
    expect(lengths([3, 5])).toEqual([{ text: "9.00 s", left: 64 }]); // not over the next one
    expect(lengths([98])).toEqual([]); // not beyond the edge
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
      "step 3: 1.00 s (input 75%, compute 25%)",
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
    expect(predicted(finding({ gain_ps: range(1, 2) }), 10 * S)).toEqual(range(8, 9)));
  it.each([
    [range(1, 2), range(0, 0), "1.00–2.00 s, in the first epoch only"],
    [range(1, 2), range(1, 2), "1.00–2.00 s in every epoch"],
    [range(1, 2), range(1, 1), "1.00–2.00 s, and 1.00 s in each later epoch"],
    [range(0, 0), range(1, 1), "1.00 s in each later epoch"],
    [range(0, 0), range(0, 0), ""],
  ])("says which epochs it saves time in", (gain_ps, later_gain_ps, text) =>
    expect(gainSentence(finding({ gain_ps, later_gain_ps }))).toBe(text),
  );
  it("gives a reason where the saving reads as more than the cost", () => {
    const saving = (high: number) => finding({ lost_ps: 2 * S, gain_ps: range(1, high) });
    expect(slowsOtherWork(saving(2.1))).toBe(true);
    expect(slowsOtherWork(saving(2.001))).toBe(false);
    expect(slowsOtherWork(saving(1.5))).toBe(false);
  });
  it("promises later epochs no more than the least, where they are slower than the first", () => {
    const slower = { gain_ps: range(2, 3), later_gain_at_least: true };
    const says = (low: number) =>
      gainSentence(finding({ ...slower, later_gain_ps: range(low, 3) }));
    expect(says(2)).toBe("2.00–3.00 s, and at least 2.00 s in each later epoch");
    expect(says(0)).toBe("2.00–3.00 s, and an unknown amount in each later epoch");
  });
  it("labels its evidence with what it took, and an instant without", () => {
    expect(evidenceLabel(evidence({ start_ps: 0, end_ps: 4.5 * S, label: "shuffle fill" }))).toBe(
      "shuffle fill 4.50 s",
    );
    expect(evidenceLabel(evidence({ start_ps: 0, end_ps: 0, label: "loss became NaN" }))).toBe(
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
  const before = reportOf("mixed_host_and_input");
  const after = reportOf("communication_straggler");
  const comparison = compare(before, after);

  it("sets every bucket that either has side by side", () =>
    expect(comparison.buckets).toEqual(
      (
        ["input", "compile", "compute", "communication", "host", "profiler", "unknown"] as const
      ).map((bucket) => ({
        bucket,
        before: before.buckets_ps[bucket],
        after: after.buckets_ps[bucket],
      })),
    ));
  it("sorts findings into gone, kept and new", () => {
    expect(comparison.gone.map(({ id }) => id)).toEqual(["ST002"]);
    expect(comparison.kept.map(({ after: { id } }) => id)).toEqual(["ST401"]);
    expect(comparison.appeared.map(({ id }) => id)).toEqual(["ST502"]);
  });
  it("sums up in a sentence", () => {
    expect(comparisonSentence(comparison)).toBe("The first epoch is 349 ms (18%) shorter.");
    expect(comparisonSentence(compare(after, before))).toBe(
      "The first epoch is 349 ms longer (1.2 times as long).",
    );
    expect(comparisonSentence(compare(after, after))).toContain("same time");
  });
  it("compares median steps", () => {
    const sorted = after.steps
      .map(({ start_ps, end_ps }) => end_ps - start_ps)
      .sort((a, b) => a - b);
    expect(sorted).toHaveLength(16);
    expect(comparison.after.stepPs).toBe((sorted[7]! + sorted[8]!) / 2);
  });
});

it("the gravest notes come first, those of one level in their own order", () => {
  const note = (level: Note["level"], text: string): Note => ({ level, text, where: "" });
  const notes = [note("info", "a"), note("error", "b"), note("info", "c"), note("warning", "d")];
  expect(gravestFirst(notes).map(({ text }) => text)).toEqual(["b", "d", "a", "c"]);
});
