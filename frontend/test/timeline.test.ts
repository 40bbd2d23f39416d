import { describe, expect, it } from "vitest";
import { flagLeft, placeFlags, rowsNeeded } from "../src/timeline/annotations";
import { bestFor, isGoodEnough, kept, requestFor } from "../src/timeline/answers";
import { type Chosen, neighbor, viewAround } from "../src/timeline/chosen";
import { traceAt } from "../src/timeline/clock";
import { hoveredAt } from "../src/timeline/hit";
import { layOut, withContents } from "../src/timeline/layout";
import { visibleOfRow } from "../src/timeline/rows";
import { lineBelow, lineOfCause } from "../src/timeline/users_line";
import type { CodeLine, EventAnswer, Lane, Trace } from "../src/types";
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
  it("are not kept forever, but the one for everything is", () => {
    let details = all.slice(0, 1);
    for (let i = 0; i < 50; i++) details = kept(details, detail(i, i + 1, 1));
    expect(details.length).toBeLessThan(10);
    expect(details[0]).toBe(all[0]);
  });
});

describe("the layout", () => {
  const lane = timeline().lanes[0]!;
  const thread = { ...lane, id: "thread", group: "training" as const, depth: 3, items: [] };
  const layout = layOut(timeline({ lanes: [lane, thread], series: [] }));

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
    expect(hoveredAt(layout, scale, 450, layout.boxes[1]!.top - 2)).toBeNull();
    const thin = layOut(timeline({ lanes: [{ ...lane, items: [[S, S, 0, 0, 1]] }] }));
    expect(hoveredAt(thin, scale, 101, thin.boxes[0]!.top + 1)).not.toBeNull();
    expect(hoveredAt(thin, scale, 110, thin.boxes[0]!.top + 1)).toBeNull();
  });
});

describe("lanes of threads", () => {
  const real = timeline().lanes[0]!;
  const deep: Lane = {
    ...real,
    id: "thread/a/1",
    group: "threads",
    depth: 3,
    rows: 3,
    items: [
      [0, 9 * S, 0, 0, 1],
      [1 * S, 3 * S, 1, 1, 1],
      [4 * S, 8 * S, 1, 1, 1],
      [5 * S, 6 * S, 2, 2, 1],
    ],
  };
  const answer = timeline({ lanes: [real, deep], threads: 5, series: [] });

  it("show one row until they are opened", () => {
    expect(layOut(answer).boxes[1]).toMatchObject({ rows: 1, fold: "closed" });
    expect(layOut(answer, new Set([deep.id])).boxes[1]).toMatchObject({ rows: 3, fold: "open" });
  });
  it("tell how many more there are", () => {
    expect(layOut(answer).headings.at(-1)).toMatchObject({ title: "Other threads", hidden: 4 });
  });

  const open = layOut(answer, new Set([deep.id]));
  const at = (row: number, start: number, end: number): Chosen => ({
    lane: deep.id,
    row,
    ...span(start, end),
  });
  it("are walked along by arrow keys: in a row, and from row to row", () => {
    expect(neighbor(open, at(1, 1, 3), "right")).toEqual(at(1, 4, 8));
    expect(neighbor(open, at(1, 4, 8), "left")).toEqual(at(1, 1, 3));
    expect(neighbor(open, at(1, 4, 8), "down")).toEqual(at(2, 5, 6));
    expect(neighbor(open, at(1, 4, 8), "up")).toEqual(at(0, 0, 9));
    expect(neighbor(open, at(1, 4, 8), "right")).toBeNull();
    expect(neighbor(open, at(2, 5, 6), "down")).toBeNull();
  });
  it("lead up into the lane above, to what lies there at that time", () => {
    expect(neighbor(open, at(0, 0, 9), "up")).toMatchObject({ lane: "ledger", ...span(4, 5) });
  });
  it("find what a view shows of a row without looking at the rest", () => {
    expect(visibleOfRow(deep, 1, span(3.5, 10))).toEqual([2, 3]);
    expect(visibleOfRow(deep, 1, span(3.2, 3.8))).toEqual([2, 2]);
    expect(visibleOfRow(deep, 0, span(2, 3))).toEqual([0, 1]);
    expect(visibleOfRow(deep, 7, span(0, 10))).toEqual([4, 4]);
  });
});

describe("the view follows the chosen event", () => {
  const event = (start: number, end: number) => ({ lane: "a", row: 0, ...span(start, end) });
  it("only where it has to", () => {
    expect(viewAround(span(2, 4), event(2.5, 3), WINDOW)).toEqual(span(2, 4));
    const after = viewAround(span(2, 4), event(5, 5.5), WINDOW);
    expect(after.start_ps).toBeLessThan(5 * S);
    expect(after.end_ps).toBeGreaterThan(5.5 * S);
    const long = viewAround(span(2, 4), event(6, 10), WINDOW);
    expect(long.start_ps).toBeLessThanOrEqual(6 * S);
    expect(long.end_ps - long.start_ps).toBeCloseTo(2 * S);
  });
});

describe("curves", () => {
  const curve = (...values: (number | null)[]) => ({
    id: "rate",
    title: "rate",
    unit: "",
    points: values.map((value, i): [number, number | null] => [i * S, value]),
  });
  const flat = (...values: (number | null)[]) =>
    layOut(timeline({ series: [curve(...values)] })).boxes.at(-1) as { isFlat: boolean };
  it("that never move take a line, not a picture", () => {
    expect(flat(1, 1, 1).isFlat).toBe(true);
    expect(flat(1, 2, 1).isFlat).toBe(false);
    expect(flat(1, null, 1).isFlat).toBe(false);
  });
});

describe("the trace viewer's clock", () => {
  const trace = (start: number, host = "vm"): Trace => ({
    session: "s",
    host,
    start_ps: start * S,
    clock: { source: "own clock", shared: 0, ahead_ps: null, error_ps: null },
  });
  it("is that of the last trace that had begun", () => {
    const traces = [trace(4), trace(-1), trace(2, "other")];
    expect(traceAt(traces, "vm", 5 * S)).toBe(traces[0]);
    expect(traceAt(traces, "vm", 3 * S)).toBe(traces[1]);
    expect(traceAt([trace(4)], "vm", S)).toMatchObject({ start_ps: 4 * S });
    expect(traceAt([], "vm", S)).toBeNull();
  });
});

describe("the user's line of an event", () => {
  const event = (name: string, around: string[], cause: string): EventAnswer => ({
    ...{ name, around, lane: "a", row: 0, count: 1, arguments: [], inside: [], ...span(0, 1) },
    causes: [[cause, S]],
  });
  it("is the innermost that the Python tracer saw outside of libraries", () => {
    const around = ["$train.py:10 main", "$/x/site-packages/keras/a.py:5 fit"];
    expect(lineBelow(event("MatMul", around, "compute.step"))).toBe("train.py:10 main");
    expect(lineBelow(event("MatMul", [], "compute.step"))).toBeNull();
  });
  it("is else the one that the cause's time went to", () => {
    const line = { cause: "input.wait", path: "a.py", line: 3 } as CodeLine;
    expect(lineOfCause(event("x", [], "input.wait"), [line])).toBe(line);
    expect(lineOfCause(event("x", [], "host.python"), [line])).toBeNull();
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
