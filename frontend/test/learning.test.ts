import { describe, expect, it } from "vitest";
import {
  axisOf,
  isAboutLearning,
  layerBars,
  learningSentence,
  roundNumbers,
  share,
  tickText,
} from "../src/learning";
import type { Learning } from "../src/types";
import { reportOf } from "./samples";

const curves = (change: Partial<Learning> = {}): Learning => ({
  per: "step",
  loss: [
    { at: 1, value: 2.5 },
    { at: 2, value: 2.4 },
  ],
  baseline: 2.302,
  baseline_words: "giving each of 10 classes the same probability",
  gradients: [],
  ...change,
});

describe("how a run learned", () => {
  it("is shown where learning is the problem, and nowhere else", () => {
    expect(isAboutLearning(reportOf("numerics_nan"))).toBe(true);
    expect(isAboutLearning(reportOf("healthy"))).toBe(false);
    expect(isAboutLearning(reportOf("numerics_nan", { learning: null }))).toBe(false);
  });
  it("is said in a sentence with the cost of a constant guess", () => {
    expect(learningSentence(curves())).toBe(
      "The loss ends at 2.4. A constant guess (giving each of 10 classes the same probability) would have a loss of 2.3.",
    );
    const lost = curves({ loss: [{ at: 7, value: null }], baseline: null });
    expect(learningSentence(lost)).toBe("The loss is NaN or infinite from step 7 on.");
  });
});

describe("axes", () => {
  it("have round numbers", () =>
    expect(roundNumbers(0.13, 1.02, 5)).toEqual([0.2, 0.4, 0.6, 0.8, 1]));
  it("tell their ticks apart", () => {
    const axis = axisOf([2.3026, 2.3032]);
    const texts = axis.ticks.map((tick) => tickText(axis, tick));
    expect(new Set(texts).size).toBe(texts.length);
    expect(tickText(axisOf([0, 10]), 10)).toBe("10");
  });
  it("hold all values", () => {
    const axis = axisOf([2, 3]);
    expect(share(axis, 2)).toBeGreaterThan(0);
    expect(share(axis, 3)).toBeLessThan(1);
  });
  it("are of powers of ten where a peak would flatten the rest", () => {
    const axis = axisOf([0.2, 5000]);
    expect(axis.isLog).toBe(true);
    expect(axis.ticks[0]).toBeCloseTo(0.1);
    expect(share(axis, 0.2)).toBeGreaterThan(0);
  });
  it("stand even where there is nothing, or one value", () => {
    expect(axisOf([]).ticks).toEqual([0, 1]);
    expect(share(axisOf([2]), 2)).toBeCloseTo(0.5);
  });
});

describe("gradients", () => {
  it("are bars of powers of ten, in the model's order", () => {
    const layer = (name: string, value: number | null) => ({
      layer: name,
      norms: [{ at: 1, value }],
    });
    const bars = layerBars(
      curves({ gradients: [layer("a", 1e-6), layer("b", 1), layer("c", null)] }),
    );
    expect(bars.map(({ layer: name }) => name)).toEqual(["a", "b", "c"]);
    expect(bars[0]!.width).toBeLessThan(0.1);
    expect(bars[1]!.width).toBeCloseTo(1);
    expect(bars[2]).toMatchObject({ norm: null, width: 0, isLost: true });
  });
});
