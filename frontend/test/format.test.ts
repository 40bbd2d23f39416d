import { describe, expect, it } from "vitest";
import {
  between,
  counted,
  cut,
  difference,
  extent,
  figure,
  percent,
  seconds,
  shortened,
  tickLabel,
} from "../src/format";
import { MS, S } from "./samples";

describe("seconds", () => {
  it.each([
    [0, "0 s"],
    [999, "<1 ns"],
    [412 * MS, "412 ms"],
    [9.994 * MS, "9.99 ms"],
    [999.6 * MS, "1.00 s"],
    [14.2 * S, "14.2 s"],
    [59.96 * S, "1 min 00 s"],
    [192 * S, "3 min 12 s"],
    [7260 * S, "2 h 01 min"],
    [1500, "2 ns"],
  ])("shows %d ps as %s, as the terminal does", (ps, text) => expect(seconds(ps)).toBe(text));
});

describe("between", () => {
  it("says the unit once where both ends share it", () =>
    expect(between({ low: 1.03 * S, high: 1.29 * S })).toBe("1.03–1.29 s"));
  it("says both units where they differ", () =>
    expect(between({ low: 850 * MS, high: 1.29 * S })).toBe("850 ms to 1.29 s"));
  it("has no lower end where that is nothing", () =>
    expect(between({ low: 0, high: S })).toBe("up to 1.00 s"));
  it("is one figure where the ends look the same", () =>
    expect(between({ low: 1.001 * S, high: 1.002 * S })).toBe("1.00 s"));
  it("does not cut minutes apart", () =>
    expect(between({ low: 61 * S, high: 125 * S })).toBe("1 min 01 s to 2 min 05 s"));
});

describe("percent", () => {
  it.each([
    [0, 10, "0%"],
    [10, 10, "100%"],
    [0.01, 10, "<1%"],
    [9.99, 10, ">99%"],
    [1, 3, "33%"],
    [1, 0, "0%"],
  ])("never rounds something to nothing: %d of %d is %s", (part, whole, text) =>
    expect(percent(part, whole)).toBe(text),
  );
});

it("a difference has a sign", () => {
  expect(difference(-412 * MS)).toBe("−412 ms");
  expect(difference(1.2 * S)).toBe("+1.20 s");
  expect(difference(0)).toBe("±0");
});

it("ticks show as many decimals as their distance needs", () => {
  expect(tickLabel(0, S)).toBe("0");
  expect(tickLabel(2 * S, S)).toBe("2 s");
  expect(tickLabel(1.25 * S, 0.05 * S)).toBe("1.25 s");
  expect(tickLabel(1.2 * S, 1e6)).toBe("1.200000 s");
  expect(tickLabel(20 * MS, 5 * MS)).toBe("20 ms");
});

it("values of a curve have three digits", () => {
  expect(figure(0.123456)).toBe("0.123");
  expect(figure(1e-7)).toBe("1.0e-7");
  expect(figure(2_340_000_000, "bytes")).toBe("2.3 GB");
  expect(extent(2.3181, 2.3214)).toBe("2.3181 to 2.3214");
  expect(extent(0.01, 0.01)).toBe("0.01");
  expect(extent(1, 2)).toBe("1 to 2");
});

it("a text loses its end where there is no room for it", () => {
  expect(cut("short", 5)).toBe("short");
  expect(cut("instantiate", 5)).toBe("inst…");
});

it("a long name loses its middle", () => {
  expect(shortened("short", 10)).toBe("short");
  expect(shortened("a".repeat(1_000_000), 20)).toHaveLength(20);
  expect(shortened("first/middle/middle/last", 12)).toMatch(/^first.*…last$/);
});

it("one is not many", () => {
  expect(counted(1, "step")).toBe("1 step");
  expect(counted(1200, "step")).toBe("1,200 steps");
});
