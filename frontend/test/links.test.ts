import { describe, expect, it } from "vitest";
import { NOWHERE, type Place, hashForPlace, placeFromHash } from "../src/links";
import { rootUrl } from "../src/root";
import { traceViewerUrl } from "../src/trace_viewer";
import { MS, S, evidence, reportOf } from "./samples";

describe("deep links", () => {
  const place: Place = {
    view: "compare",
    run: "a/b & c=d #é",
    other: ".",
    finding: "ST104",
    host: "vm-1",
    only: "day:2026-11-16",
    range: { start_ps: 12, end_ps: 5 * S },
  };

  it("lead back to the place they were made of", () =>
    expect(placeFromHash(hashForPlace(place, "#stall"))).toEqual(place));
  it("name only what is not usual", () =>
    expect(hashForPlace({ ...NOWHERE, run: "train" }, "#stall")).toBe("#stall&p.stall.run=train"));
  it("leave TensorBoard's own part of the hash alone", () =>
    expect(hashForPlace({ ...NOWHERE, run: "b" }, "#stall&x=1&p.stall.run=a")).toBe(
      "#stall&x=1&p.stall.run=b",
    ));
  it("name the tab where the hash was empty", () =>
    expect(hashForPlace(NOWHERE, "")).toBe("#stall"));
  it.each(["", "#", "#stall", "#stall&p.stall.from=5&p.stall.to=2", "#stall&p.stall.to=abc"])(
    "without sense lead nowhere special: %s",
    (hash) => expect(placeFromHash(hash)).toEqual(NOWHERE),
  );
  it("that were cut in an escape still work", () =>
    expect(placeFromHash("#stall&p.stall.run=a%E").run).toBe("a%E"));
});

describe("links into the trace viewer", () => {
  const root = "http://localhost:6006/prefix/";
  const traces = reportOf("healthy").traces.map((trace) => ({ ...trace, start_ps: -2 * S }));
  const at = evidence({ start_ps: S, end_ps: 2 * S });

  it("open the time of the evidence, with some context, in the trace's own milliseconds", () => {
    const url = new URL(traceViewerUrl(root, at, traces)!);
    expect(url.pathname).toBe("/prefix/data/plugin/profile/trace_viewer_index.html");
    expect(Number(url.searchParams.get("view_start"))).toBe(2800);
    expect(Number(url.searchParams.get("view_end"))).toBe(4200);
    const data = new URL(url.origin + url.searchParams.get("trace_data_url"));
    expect(data.pathname).toBe("/prefix/data/plugin/profile/data");
    expect(data.searchParams.get("run")).toBe(traces[0]!.session);
    expect(data.searchParams.get("tag")).toBe("trace_viewer@");
    expect(data.searchParams.get("host")).toBe("host");
  });
  it("never begin before the trace", () => {
    const early = evidence({ start_ps: -2 * S, end_ps: -2 * S + MS });
    expect(new URL(traceViewerUrl(root, early, traces)!).searchParams.get("view_start")).toBe(
      "0.000000",
    );
  });
  it("are not there without a trace", () => expect(traceViewerUrl(root, at, [])).toBeNull());
});

it("TensorBoard's root is found below any path prefix", () => {
  expect(rootUrl("http://h:1/data/plugin/stall/")).toBe("http://h:1/");
  expect(rootUrl("http://h:1/a/b/data/plugin/stall/")).toBe("http://h:1/a/b/");
});
