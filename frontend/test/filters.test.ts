import { describe, expect, it } from "vitest";
import { choicesOf, dayOf, linkTo, matchingRuns, onlyFromLink, runsWith } from "../src/filters";
import { finding, summary } from "./samples";

const NOON_NS = Date.UTC(2026, 10, 16, 12) * 1e6;
const some = [
  summary("a", { status: "stuck", primary: "input", started_unix_ns: NOON_NS }),
  summary("b", {
    status: "stuck",
    primary: "host",
    findings: [finding()],
    started_unix_ns: NOON_NS + 13 * 3600e9,
  }),
  summary("c", {
    state: "unread",
    status: null,
    primary: null,
    sentence: null,
    findings: null,
    started_unix_ns: null,
  }),
];

describe("runs that have something in common", () => {
  it.each([
    ["status:stuck", ["a", "b"]],
    ["bucket:input", ["a"]],
    ["finding:ST101", ["b"]],
    ["finding:ST999", []],
    ["day:2026-11-16", ["a"]],
    ["day:2026-11-17", ["b"]],
    ["status:stuck;day:2026-11-17", ["b"]],
    ["status:stuck;text:TRACING", ["b"]],
    ["text:status:stuck;day:", []],
  ])("%s", (link, names) => {
    const only = onlyFromLink(link);
    expect(runsWith(some, only).map(({ run }) => run)).toEqual(names);
    expect(linkTo(only)).toBe(link);
  });

  it.each([null, "", "finding", "finding:", "color:red", ";;"])("%s means all of them", (link) => {
    expect(onlyFromLink(link)).toEqual({});
    expect(runsWith(some, {})).toHaveLength(3);
    expect(linkTo({})).toBeNull();
  });

  it("a run without a clock, or with one that was never set, is of no day", () => {
    expect(dayOf(null)).toBeNull();
    expect(dayOf(1e300)).toBeNull();
  });
});

it("runs are found by words of name, verdict and findings, in any order and case", () => {
  const named = ["resnet/lr_0.1/a", "ResNet/lr_0.2/b", "bert/lr_0.1/c"].map((name) =>
    summary(name),
  );
  const found = (text: string) => matchingRuns(named, text).map(({ run }) => run);
  expect(found("0.1 resnet")).toEqual(["resnet/lr_0.1/a"]);
  expect(found("RESNET")).toHaveLength(2);
  expect(found(" ")).toHaveLength(3);
  expect(matchingRuns(some, "stuck")).toHaveLength(2);
  expect(matchingRuns(some, "st101 tracing")).toHaveLength(1);
});

describe("what can be chosen", () => {
  it("is counted among the runs that the other filters leave", () => {
    expect(choicesOf(some, { bucket: "input" }, "status")).toEqual([
      { value: "stuck", words: "Stuck", count: 1 },
    ]);
    expect(choicesOf(some, { bucket: "input" }, "bucket").map(({ value }) => value)).toEqual([
      "input",
      "host",
    ]);
  });
  it("goes by names, the newest day first", () => {
    expect(choicesOf(some, {}, "finding")).toEqual([
      { value: "ST101", words: "ST101 tracing", count: 1 },
    ]);
    expect(choicesOf(some, {}, "day").map(({ value }) => value)).toEqual([
      "2026-11-17",
      "2026-11-16",
    ]);
  });
  it("holds what is chosen though no run has it", () =>
    expect(choicesOf(some, { finding: "ST999" }, "finding")).toContainEqual({
      value: "ST999",
      words: "ST999",
      count: 0,
    }));
});
