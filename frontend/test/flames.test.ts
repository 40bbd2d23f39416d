import { describe, expect, it } from "vitest";
import { boxesOf, flamesOf, flamesOfRange } from "../src/flames";
import type { Stacks } from "../src/types";

const stacks: Stacks = {
  frames: ["main", "fit", "call", "sin", "cos", "load"],
  users: [0, 2, 5],
  stacks: [
    { bucket: "compile", frames: [0, 1, 2, 3], ps: 60 },
    { bucket: "compile", frames: [0, 1, 2, 4], ps: 30 },
    { bucket: "compile", frames: [0, 1, 4], ps: 10 },
    { bucket: "input", frames: [0, 5, 3], ps: 7 },
  ],
};

describe("flamesOf", () => {
  it("puts what has the same callers together, and leaves out what all have in common", () => {
    const root = flamesOf(stacks, "compile");
    expect(root.ps).toBe(100);
    expect(root.children.map(({ frame, ps }) => [frame, ps])).toEqual([
      [2, 90],
      [4, 10],
    ]);
    expect(root.children[0]!.children.map(({ frame }) => frame)).toEqual([3, 4]);
  });

  it("keeps the user's last line where all stacks are the same", () =>
    expect(flamesOf(stacks, "input").children.map(({ frame }) => frame)).toEqual([5]));
});

describe("boxesOf", () => {
  it("gives each its share of the width, below its caller", () => {
    const boxes = boxesOf(flamesOf(stacks, "compile"));
    const shown = boxes.map(({ flame, left, width, depth }) => [flame.frame, left, width, depth]);
    expect(shown).toEqual([
      [-1, 0, 1, 0],
      [2, 0, 0.9, 1],
      [3, 0, 0.6, 2],
      [4, 0.6, 0.3, 2],
      [4, 0.9, 0.1, 1],
    ]);
  });

  it("leaves out what nobody could see", () => {
    const thin = { ...stacks.stacks[0]!, frames: [0, 5], ps: 0.1 };
    const root = flamesOf({ ...stacks, stacks: [...stacks.stacks, thin] }, "compile");
    expect(boxesOf(root).some(({ flame }) => flame.frame === 5)).toBe(false);
  });
});

describe("the flames of a range", () => {
  it("hang below who ran them", () => {
    const root = flamesOfRange([
      [-1, "pool", 10],
      [0, "map", 8],
      [-1, "python", 5],
    ]);
    expect(root.ps).toBe(15);
    expect(root.children.map(({ frame, ps }) => [frame, ps])).toEqual([
      [0, 10],
      [2, 5],
    ]);
    expect(root.children[0]!.children[0]).toMatchObject({ frame: 1, ps: 8 });
  });
});
