import { describe, expect, it } from "vitest";
import {
  PAGE_ROWS,
  firstEpoch,
  firstRun,
  inShort,
  isBusy,
  pageOf,
  readCount,
  runName,
  sortedRuns,
  unreadNames,
} from "../src/runs";
import { S, data, finding, summary } from "./samples";

const runs = [
  summary("run10", { duration_ps: 3 * S, status: "healthy" }),
  summary("run2", { duration_ps: 9 * S, status: "slow_always", findings: [finding()] }),
  summary("run1", { duration_ps: 1 * S, status: "stuck" }),
];
const order = (
  ...by: Parameters<typeof sortedRuns> extends [unknown, ...infer Rest] ? Rest : never
) => sortedRuns(runs, ...by).map(({ run }) => run);

it("runs are sorted so that what needs attention comes first", () => {
  expect(order("status", false)).toEqual(["run1", "run2", "run10"]);
  expect(order("duration", false)).toEqual(["run2", "run10", "run1"]);
  expect(order("gain", false)[0]).toBe("run2");
  expect(order("duration", true)).toEqual(["run1", "run10", "run2"]);
});

it("an epoch that goes on takes longer than it has until now", () => {
  expect(firstEpoch(runs[0]!)).toBe("3.00 s");
  expect(firstEpoch(summary("x", { duration_ps: 3 * S, status: "running" }))).toBe("> 3.00 s");
  expect(firstEpoch(summary("x", { duration_ps: 0 }))).toBe("–");
});

it("runs that are equal go by name, with numbers as numbers", () =>
  expect(order("later", false)).toEqual(["run1", "run2", "run10"]));

it("the order of names can be turned around", () => {
  expect(order("run", false)).toEqual(["run1", "run2", "run10"]);
  expect(order("run", true)).toEqual(["run10", "run2", "run1"]);
});

it("what is not known comes last, in either direction", () => {
  const unread = summary("run0", { state: "unread", status: null, duration_ps: null });
  for (const isReversed of [false, true]) {
    expect(sortedRuns([unread, ...runs], "duration", isReversed).at(-1)).toBe(unread);
    expect(sortedRuns([unread, ...runs], "status", isReversed).at(-1)).toBe(unread);
  }
});

it("a list is busy while one of its runs is", () => {
  expect(isBusy(runs)).toBe(false);
  expect(isBusy([...runs, summary("x", { state: "waiting" })])).toBe(true);
  const growing = summary("x", { progress: { share: 0.5, text: "reading again" } });
  expect(isBusy([growing])).toBe(true);
});

it("a single run is opened at once, of several the reader chooses", () => {
  expect(firstRun(runs.slice(0, 1))).toBe("run10");
  expect(firstRun(runs)).toBeNull();
});

describe("a great many runs", () => {
  const many = Array.from({ length: 2 * PAGE_ROWS + 3 }, (_, i) =>
    summary(`run${i}`, { state: i === 0 ? "ready" : "unread" }),
  );

  it("come in pages", () => {
    expect(pageOf(many, 0)).toMatchObject({ number: 0, count: 3, first: 1, last: PAGE_ROWS });
    const last = pageOf(many, 2);
    expect(last.rows.map(({ run }) => run)).toEqual(["run100", "run101", "run102"]);
    expect(last).toMatchObject({ first: 101, last: 103 });
  });
  it("have no page beyond the last, even when some have gone", () => {
    expect(pageOf(many, 99).number).toBe(2);
    expect(pageOf([], 5)).toMatchObject({ number: 0, count: 1, first: 0, last: 0, rows: [] });
  });
  it("are read when they are seen", () => {
    expect(unreadNames(pageOf(many, 0).rows)).toHaveLength(PAGE_ROWS - 1);
    expect(readCount(many)).toBe(1);
  });
  it("with long names are asked for in several questions", () => {
    const long = Array.from({ length: 5 }, (_, i) =>
      summary(`${i}${"x".repeat(3000)}`, { state: "unread" }),
    );
    expect(unreadNames(long)).toHaveLength(1);
  });
  it("do not count as busy while nobody asks for them", () => expect(isBusy(many)).toBe(false));
});

describe("a line of the list", () => {
  const change = data.runs.runs.find(({ run }) => run === "input_py_function")!.findings;
  it("says what could be changed", () =>
    expect(inShort(summary("a", { status: "slow_always", findings: change }))).toBe(
      change![0]!.title,
    ));
  it("says what is wrong with a run that is stuck, dead or learns nothing", () =>
    expect(inShort(summary("a", { status: "stuck", sentence: "Stuck.", findings: change }))).toBe(
      "Stuck.",
    ));
  it("is the verdict where nothing is found", () =>
    expect(inShort(summary("a", { sentence: "Well.", findings: [] }))).toBe("Well."));
});

describe("runs by verdict", () => {
  it("those with the same verdict stand in the order of what can be saved", () => {
    const [most] = data.runs.runs.find(({ run }) => run === "input_py_function")!.findings!;
    const rich = summary("z", { status: "slow_always", findings: [most!] });
    const poor = summary("a", { status: "slow_always", findings: [] });
    const stuck = summary("m", { status: "stuck", findings: [] });
    const inOrder = sortedRuns([poor, rich, stuck], "status", false);
    expect(inOrder.map(({ run }) => run)).toEqual(["m", "z", "a"]);
  });
});

it.each([
  [".", "/home/me/logs/run1/", "run1"],
  [". (attempt 2)", "logs/run1", "run1 (attempt 2)"],
  [".", "C:\\logs\\run1", "run1"],
  [".", "gs://bucket/$&/run1", "run1"],
  [".", ".", "."],
  [".hidden", "logs", ".hidden"],
  ["train", "logs", "train"],
])("the run %s of %s is called %s", (run, logdir, name) => expect(runName(run, logdir)).toBe(name));
