import { expect, it } from "vitest";
import { firstRun, isBusy, sortedRuns } from "../src/runs";
import { S, finding, summary } from "./samples";

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

it("runs that are equal go by name, with numbers as numbers", () =>
  expect(order("later", false)).toEqual(["run1", "run2", "run10"]));

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
