/** What the page and the analyzer must agree on, read from the analyzer's own source. */

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { BUCKETS, BUCKET_COLORS, STATUS_COLORS } from "../src/palette";

const analyzer = (path: string) =>
  readFileSync(new URL(`../../analyzer/stall_analyzer/${path}`, import.meta.url), "utf8");

/** `NAME: type = {"a": "b", …}` of a Python module. */
function pythonTable(source: string, name: string): Record<string, string> {
  const body = new RegExp(`^${name}: .* = \\{([^}]*)\\}`, "m").exec(source)![1]!;
  return Object.fromEntries([...body.matchAll(/"([^"]+)": "([^"]+)"/g)].map(([, k, v]) => [k, v]));
}

describe("the analyzer and the page", () => {
  const palette = analyzer("report/palette.py");

  it("paint the buckets in the same colors", () =>
    expect(BUCKET_COLORS).toEqual(pythonTable(palette, "BUCKET_COLORS")));
  it("paint the verdicts in the same colors", () =>
    expect(STATUS_COLORS).toEqual(pythonTable(palette, "STATUS_COLORS")));
  it("know the same buckets and verdicts", () => {
    const { $defs: defs } = JSON.parse(analyzer("report/schema.json"));
    expect(BUCKETS).toEqual(defs.bucket.enum);
    expect(Object.keys(STATUS_COLORS)).toEqual(defs.status.enum);
  });
});
