import { describe, expect, it } from "vitest";
import { goesOn, liveInShort, liveLines } from "../src/live";
import type { LiveProcess } from "../src/types";
import { summary } from "./samples";

const process = (change: Partial<LiveProcess> = {}): LiveProcess => ({
  name: "",
  text: "step 56 of 200, 71% waiting for input",
  now: "",
  late: false,
  buckets_ps: {},
  ...change,
});

describe("a run that goes on", () => {
  it("with one process has one line", () => {
    const live = { processes: [process()], stall: "" };
    expect(liveLines(live).map(({ who }) => who)).toEqual([""]);
    expect(liveInShort(live)).toBe("step 56 of 200, 71% waiting for input");
  });
  it("with many has a line for each that is late and one for the others", () => {
    const many = Array.from({ length: 63 }, (_, i) => process({ name: `worker ${i}` }));
    const late = process({ name: "worker 63", text: "step 50 of 200", late: true });
    const live = { processes: [...many, late], stall: "" };
    expect(liveLines(live).map(({ who, late: isLate }) => [who, isLate])).toEqual([
      ["worker 63", true],
      ["63 workers", false],
    ]);
    expect(liveInShort(live)).toBe("worker 63 is late: step 50 of 200; 63 workers are waiting");
  });
  it("with one that waits for the late one says so of one", () => {
    const [on, late] = [process({ name: "worker 0" }), process({ name: "worker 1", late: true })];
    expect(liveInShort({ processes: [on, late], stall: "" })).toMatch(/; worker 0 is waiting$/);
  });
  it("that is held up says so first", () =>
    expect(liveInShort({ processes: [process()], stall: "It waits for a lock." })).toBe(
      "It waits for a lock.",
    ));
  it("is looked at again, as is one that ordinary logs say is running", () => {
    expect(goesOn(summary("a", { live: { processes: [process()], stall: "" } }))).toBe(true);
    expect(goesOn(summary("a", { status: "running" }))).toBe(true);
    expect(goesOn(summary("a", { status: "healthy" }))).toBe(false);
  });
});
