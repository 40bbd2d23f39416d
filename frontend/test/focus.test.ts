import { expect, it } from "vitest";
import { focusOnBucket, focusOnFinding, focusOnStep, viewOf } from "../src/focus";
import { stepped } from "../src/timeline/toolbar";
import { S, evidence, finding, step, timeline } from "./samples";

const two = finding({
  evidence: [
    evidence({ start_ps: 2 * S, end_ps: 3 * S }),
    evidence({ start_ps: 6 * S, end_ps: 7 * S }),
  ],
});

it("a finding is shown with all of its evidence, and a little around it", () => {
  const view = viewOf(focusOnFinding(two), 10 * S);
  expect(view.start_ps).toBeLessThan(2 * S);
  expect(view.end_ps).toBeGreaterThan(7 * S);
});

it("one piece of evidence is shown alone", () => {
  const view = viewOf(focusOnFinding(two, 1), 10 * S);
  expect(view.start_ps).toBeGreaterThan(5 * S);
  expect(view.end_ps).toBeLessThan(8 * S);
});

it("an instant has some time around it, and a finding without evidence shows all", () => {
  const instant = finding({ evidence: [evidence({ start_ps: S, end_ps: S })] });
  const view = viewOf(focusOnFinding(instant), 10 * S);
  expect(view.end_ps - view.start_ps).toBeGreaterThan(0);
  expect(viewOf(focusOnFinding(finding({ evidence: [] })), 10 * S)).toEqual({
    start_ps: 0,
    end_ps: 10 * S,
  });
});

it("a bucket is shown at its longest stretch, neighbors counted as one", () => {
  const focus = focusOnBucket("input", timeline())!;
  expect(focus.spans.map(({ start_ps, end_ps }) => [start_ps / S, end_ps / S])).toEqual([
    [7, 10],
    [4, 5],
  ]);
  expect(focusOnBucket("memory", timeline())).toBeNull();
});

it("the walk along the evidence goes round", () => {
  const all = focusOnFinding(two);
  expect(stepped(all, 1).at).toBe(0);
  expect(stepped(all, -1).at).toBe(1);
  expect(stepped({ ...all, at: 1 }, 1).at).toBe(0);
});

it("a step is a focus of its own", () =>
  expect(focusOnStep(step(3, S, 2 * S))).toMatchObject({ title: "step 3", at: 0 }));
