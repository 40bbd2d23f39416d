import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { BUCKETS, BUCKET_COLORS, heat, luminance } from "../src/palette";

const READABLE = 4.5; // WCAG AA

function contrast(background: string, ink: string): number {
  const parts = (background.match(/\d+/g) ?? []).map(Number) as [number, number, number];
  const values = [luminance(parts), ink === "#FFFFFF" ? 1 : 0].sort((a, b) => b - a);
  return (values[0]! + 0.05) / (values[1]! + 0.05);
}

it.each(BUCKETS)("figures can be read on every shade of %s, in light and in dark", (bucket) => {
  for (const isDark of [false, true]) {
    for (let share = 0; share <= 1; share += 0.01) {
      const { backgroundColor, color } = heat(bucket, share, isDark);
      expect(contrast(backgroundColor, color)).toBeGreaterThanOrEqual(READABLE);
    }
  }
});

it("a shade goes from the page's own color to the bucket's", () => {
  expect(heat("input", 0, false).backgroundColor).toBe("rgb(255 255 255)");
  expect(heat("input", 1, true).backgroundColor).toBe("rgb(230 159 0)");
  expect(BUCKET_COLORS.input).toBe("#E69F00");
});

it("knows the page's own colors", () => {
  const css = readFileSync(new URL("../src/styles/base.css", import.meta.url), "utf8");
  expect([...css.matchAll(/--surface: (#\w+)/g)].map(([, color]) => color)).toEqual([
    "#ffffff",
    "#3a3a3a",
  ]);
});
