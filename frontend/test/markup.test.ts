import { describe, expect, it } from "vitest";
import { blocksOf, piecesOf } from "../src/markup";

describe("the manual's text", () => {
  it("is paragraphs, whose lines run on", () => {
    expect(blocksOf("one\ntwo\n\nthree")).toEqual([
      { kind: "paragraph", pieces: [{ text: "one two", isCode: false }] },
      { kind: "paragraph", pieces: [{ text: "three", isCode: false }] },
    ]);
  });
  it("has code between backquotes", () => {
    expect(piecesOf("call `ds.map(f)` once")).toEqual([
      { text: "call ", isCode: false },
      { text: "ds.map(f)", isCode: true },
      { text: " once", isCode: false },
    ]);
  });
  it("takes a backquote without a partner for a character", () => {
    expect(piecesOf("`a` and `b")).toEqual([
      { text: "a", isCode: true },
      { text: " and `b", isCode: false },
    ]);
  });
  it("has code in indented lines, and lists", () => {
    expect(blocksOf("So:\n    a = 1\n    b = 2\n- one\n  goes on\n- two")).toEqual([
      { kind: "paragraph", pieces: [{ text: "So:", isCode: false }] },
      { kind: "code", text: "a = 1\nb = 2" },
      {
        kind: "list",
        items: [[{ text: "one goes on", isCode: false }], [{ text: "two", isCode: false }]],
      },
    ]);
  });
});
