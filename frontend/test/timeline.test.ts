import { describe, expect, it } from "vitest";
import { flagLeft, placeFlags, rowsNeeded } from "../src/timeline/annotations";
import { bestFor, isGoodEnough, kept, requestFor } from "../src/timeline/answers";
import { hoveredAt } from "../src/timeline/hit";
import { layOut, withContents } from "../src/timeline/layout";
import { Scale, clamped, isWhole, panned, ticks, whole, zoomed } from "../src/timeline/view";
import { S, evidence, finding, timeline } from "./samples";

const WINDOW = 10 * S;
const span = (start: number, end: number) => ({ start_ps: start * S, end_ps: end * S });

describe("the view", () => {
  it("keeps the time under the pointer where it is while zooming", () => {
    const view = zoomed(span(0, 10), 0.25, 0.5, WINDOW);
    expect(view.start_ps + 0.25 * (view.end_ps - view.start_ps)).toBeCloseTo(2.5 * S);
    expect(view.end_ps - view.start_ps).toBeCloseTo(5 * S);
  });
  it("never leaves the window", () => {
    expect(zoomed(span(8, 10), 0.5, 100, WINDOW)).toEqual(span(0, 10));
    expect(panned(span(8, 10), 5, WINDOW)).toEqual(span(8, 10));
    expect(panned(span(0, 2), -5, WINDOW)).toEqual(span(0, 2));
    expect(clamped(span(-5, 50), WINDOW)).toEqual(whole(WINDOW));
  });
  it("knows when it shows everything", () => {
    expect(isWhole(span(0, 10), WINDOW)).toBe(true);
    expect(isWhole(span(0, 9), WINDOW)).toBe(false);
  });
  it("has round ticks", () => {
    expect(ticks(span(0, 10), 8)).toEqual({
      stepPs: 2 * S,
      at: [0, 2, 4, 6, 8, 10].map((s) => s * S),
    });
    expect(ticks(span(1.23, 1.27), 4).stepPs).toBe(0.01 * S);
  });
  it("maps times to pixels and back", () => {
    const scale = new Scale(span(2, 4), 1000);
    expect(scale.x(3 * S)).toBeCloseTo(500);
    expect(scale.ps(500)).toBeCloseTo(3 * S);
    expect(scale.psPerPixel).toBeCloseTo(S / 500);
  });
});

describe("answers at hand", () => {
  const detail = (start: number, end: number, psPerPixel: number) => ({
    answer: timeline(span(start, end)),
    psPerPixel,
  });
  const all = [detail(0, 10, 100), detail(2, 6, 10), detail(3, 4, 1)];

  it("the finest one that holds all of the view is shown", () => {
    expect(bestFor(all, span(3.2, 3.8))).toBe(all[2]);
    expect(bestFor(all, span(3, 5))).toBe(all[1]);
    expect(bestFor(all, span(1, 5))).toBe(all[0]);
    expect(bestFor([], span(1, 5))).toBeNull();
  });
  it("hold a view that rounding has moved beyond the edge", () =>
    expect(bestFor(all, { start_ps: 3 * S - 0.002, end_ps: 4 * S + 0.002 })).toBe(all[2]));
  it("are asked for again only where the screen could show more", () => {
    expect(isGoodEnough(all[0]!, 80)).toBe(true);
    expect(isGoodEnough(all[0]!, 20)).toBe(false);
    expect(isGoodEnough(null, 20)).toBe(false);
  });
  it("reach beyond the view, inside the window", () => {
    expect(requestFor(span(4, 6), WINDOW)).toEqual(span(3, 7));
    expect(requestFor(span(0, 10), WINDOW)).toEqual(span(0, 10));
  });
  it("are not kept for ever, but the one for everything is", () => {
    let details = all.slice(0, 1);
    for (let i = 0; i < 50; i++) details = kept(details, detail(i, i + 1, 1));
    expect(details.length).toBeLessThan(10);
    expect(details[0]).toBe(all[0]);
  });
});

describe("the layout", () => {
  const lane = timeline().lanes[0]!;
  const thread = { ...lane, id: "thread", group: "training" as const, depth: 3, items: [] };
  const layout = layOut(timeline({ lanes: [lane, thread], series: [] }), 100);

  it("puts lanes below each other, with a heading above each group but the first", () => {
    expect(layout.headings.map(({ title }) => title)).toEqual(["Training"]);
    expect(layout.boxes[1]!.top).toBeGreaterThan(layout.boxes[0]!.top + layout.boxes[0]!.height);
    expect(layout.height).toBeGreaterThan(layout.boxes[1]!.top + layout.boxes[1]!.height);
  });
  it("stays where it is when a finer answer lacks a lane", () => {
    const finer = withContents(layout, timeline({ lanes: [lane] }));
    expect(finer.boxes.map(({ top }) => top)).toEqual(layout.boxes.map(({ top }) => top));
    expect(finer.boxes[1]).toMatchObject({ lane: { items: [] } });
  });
  it("finds the interval under the pointer, and one thinner than a pixel beside it", () => {
    const scale = new Scale(whole(WINDOW), 1000);
    const y = layout.boxes[0]!.top + 5;
    expect(hoveredAt(layout, scale, 450, y)).toMatchObject({ item: [4 * S, 5 * S, 0, 0, 1] });
    expect(hoveredAt(layout, scale, 450, layout.boxes[1]!.top + 1)).toBeNull();
    expect(hoveredAt(layout, scale, 450, 5)).toBeNull();
    const thin = layOut(timeline({ lanes: [{ ...lane, items: [[S, S, 0, 0, 1]] }] }), 0);
    expect(hoveredAt(thin, scale, 101, thin.boxes[0]!.top + 1)).not.toBeNull();
    expect(hoveredAt(thin, scale, 110, thin.boxes[0]!.top + 1)).toBeNull();
  });
});

describe("annotations", () => {
  const scale = new Scale(whole(WINDOW), 1000);
  const many = finding({
    evidence: Array.from({ length: 20 }, (_, i) => evidence({ start_ps: i, end_ps: i + S })),
  });

  it("take a row of their own where labels would overlap, and only mark the place when all are full", () => {
    const rows = placeFlags([many], scale, 3).map(({ row }) => row);
    expect(rows.filter((row) => row !== null)).toEqual([0, 1, 2]);
  });
  it("name the finding where it begins, and what the rest of its evidence is", () => {
    const later = evidence({ start_ps: 8 * S, end_ps: 9 * S });
    const earlier = evidence({ start_ps: S, end_ps: S, label: "loss is NaN" });
    const flags = placeFlags([finding({ title: "Traced", evidence: [later, earlier] })], scale, 3);
    expect(flags.map(({ label }) => label)).toEqual(["Traced", "tracing 1.00 s"]);
    expect(flags.map(({ evidenceIndex }) => evidenceIndex)).toEqual([1, 0]);
  });
  it("outside of the view are left out", () =>
    expect(placeFlags([many], new Scale(span(5, 6), 1000), 3)).toEqual([]));
  it("stay readable at the right edge", () => {
    const late = finding({ evidence: [evidence({ start_ps: 9.99 * S, end_ps: 10 * S })] });
    const [flag] = placeFlags([late], scale, 3);
    expect(flagLeft(flag!, 1000) + flag!.labelWidth).toBeLessThanOrEqual(1000);
  });
  it("need as many rows as overlap when everything is shown", () => {
    expect(rowsNeeded([], WINDOW, 1000)).toBe(0);
    expect(rowsNeeded([finding({ evidence: [evidence()] })], WINDOW, 1000)).toBe(1);
    expect(rowsNeeded([many], WINDOW, 1000)).toBe(3);
  });
});
