import { afterEach, describe, expect, it, vi } from "vitest";
import { EmbeddedSource } from "../src/data/embedded";
import { HttpSource } from "../src/data/http";
import { unpacked } from "../src/data/packed";
import { NotReady } from "../src/data/source";
import type { Lane, Series } from "../src/types";
import { packed } from "./pack";
import { S, data as real, summary, timeline } from "./samples";

describe("a running TensorBoard", () => {
  afterEach(() => vi.unstubAllGlobals());
  const answering = (body: string, status = 200) => {
    const asked = vi.fn(async (_url: URL) => new Response(body, { status }));
    vi.stubGlobal("fetch", asked);
    return asked;
  };
  const source = new HttpSource("http://h:1/prefix/data/plugin/stall/");

  it("is asked below its path prefix, with every name escaped", async () => {
    const asked = answering("{}");
    await source.report("a&b/c=d");
    expect(asked.mock.calls[0]![0].href).toBe(
      "http://h:1/prefix/data/plugin/stall/report?run=a%26b%2Fc%3Dd",
    );
  });
  it("hears which runs are wanted, and which to try again", async () => {
    const asked = answering("{}");
    await source.runs();
    await source.runs({ names: ["a b", "c&d"], all: true }, { again: false, fresh: true });
    await source.report("a", { again: true, fresh: false });
    const queries = asked.mock.calls.map(([url]) => url.search);
    expect(queries).toEqual(["", "?run=a+b&run=c%26d&all=&fresh=", "?run=a&again="]);
  });
  it("gets whole picoseconds and pixels", async () => {
    const asked = answering(JSON.stringify(packed(timeline())));
    const request = { run: ".", host: null, start_ps: 0.5, end_ps: 10.5, pixels: 4.2 };
    const { psPerPixel } = await source.timeline(request);
    expect(asked.mock.calls[0]![0].search).toBe("?run=.&start_ps=0&end_ps=11&pixels=5");
    expect(psPerPixel).toBeCloseTo(10 / 4.2);
  });
  it("says when a timeline is being made, so that it can be asked again", async () => {
    answering('{"state": "running", "progress": null}');
    const request = { run: ".", host: null, start_ps: 0, end_ps: 10, pixels: 4 };
    await expect(source.timeline(request)).rejects.toThrow(NotReady);
  });
  it("explains itself when it refuses", async () => {
    answering('{"error": "There is no run x."}', 404);
    await expect(source.report("x")).rejects.toThrow("There is no run x.");
  });
  it("that answers rubbish is not believed", async () => {
    answering("<html>", 500);
    await expect(source.runs()).rejects.toThrow("status 500");
  });
  it("that has stopped is said to have stopped", async () => {
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("failed")));
    await expect(source.runs()).rejects.toThrow("is not responding");
  });
});

describe("a timeline as it is sent", () => {
  it("holds each item, its division and each point", () => {
    const [lane] = timeline().lanes;
    const items: Lane["items"] = [
      [3 * S, 3 * S + 1, 0, 0, 1],
      [3 * S + 1, 9 * S, 2, 0, 70_000, [[2, 5 * S], [0, S - 1]]],
      [0, 10 * S, 1, 2, 1],
    ]; // prettier-ignore
    const points: Series["points"] = [[-S, 0.1], [0, null], [S, -2e300]]; // prettier-ignore
    const shown = timeline({
      lanes: [{ ...lane!, depth: 4, rows: 3, items }],
      series: [{ id: "loss", title: "loss", unit: "", points }],
    });
    expect(unpacked(packed(shown))).toEqual(shown);
  });
  it("tells what the back end knows of a sample", () => {
    const { lanes, names, end_ps } = unpacked(real.timelines["compile_tracing"]![0]!);
    const ledger = lanes.find(({ id }) => id === "ledger")!;
    expect(ledger.items.at(0)![0]).toBe(0);
    expect(ledger.items.at(-1)![1]).toBe(end_ps);
    ledger.items.slice(1).forEach(([start], i) => expect(start).toBe(ledger.items[i]![1]));
    for (const lane of lanes) {
      expect(lane.items.every(([, , name]) => name < names.length)).toBe(true);
    }
  });
});

describe("a one-file report", () => {
  const data = {
    ...real,
    runs: { ...real.runs, runs: [summary("a"), summary("not in full")] },
    reports: { a: real.reports["healthy"]! },
    timelines: { a: [timeline(), timeline({ start_ps: 0, end_ps: 5 * S })].map(packed) },
  };
  const source = new EmbeddedSource(data);

  it("answers with what it carries", async () => {
    expect((await source.runs()).runs).toHaveLength(2);
    expect(await source.report("a")).toBe(data.reports["a"]);
  });
  it("gives the finest timeline that holds what is asked for", async () => {
    const ask = (start: number, end: number) =>
      source.timeline({ run: "a", host: null, start_ps: start * S, end_ps: end * S, pixels: 1000 });
    expect((await ask(1, 2)).answer.end_ps).toBe(5 * S);
    expect((await ask(4, 6)).answer.end_ps).toBe(10 * S);
  });
  it("keeps the hosts apart", async () => {
    const two = new EmbeddedSource({
      ...data,
      timelines: {
        a: [timeline(), timeline({ host: "other", names: ["x", "y", "z"] })].map(packed),
      },
    });
    const ask = (host: string | null) =>
      two.timeline({ run: "a", host, start_ps: 0, end_ps: S, pixels: 10 });
    expect((await ask(null)).answer.host).toBe("host");
    expect((await ask("other")).answer.host).toBe("other");
    expect((await two.search({ run: "a", host: "other", text: "input" })).total).toBe(0);
  });
  it("finds events by a part of their name, in any case, each one once", async () => {
    const { hits, total } = await source.search({ run: "a", host: null, text: "INPUT" });
    expect(total).toBe(3);
    expect(hits[0]).toMatchObject({ name: "input.wait", start_ps: 4 * S });
  });
  it("says what it lacks", async () => {
    await expect(source.report("b")).rejects.toThrow("no run b");
    await expect(source.report("not in full")).rejects.toThrow("only the costliest runs in full");
    await expect(source.manual("ST999")).rejects.toThrow("ST999");
    await expect(
      source.timeline({ run: "b", host: null, start_ps: 0, end_ps: 1, pixels: 1 }),
    ).rejects.toThrow("does not contain this timeline");
    await expect(
      source.timeline({ run: "a", host: "other", start_ps: 0, end_ps: 1, pixels: 1 }),
    ).rejects.toThrow("does not contain this timeline");
  });

  it("sums up a stretch by cause and by event, as far as it can", async () => {
    const ranged = await source.range({ run: "a", host: null, start_ps: 3 * S, end_ps: 5 * S });
    expect(ranged.causes).toEqual([
      ["compile.tracing", S],
      ["input.wait", S],
    ]);
    expect(ranged.flames).toEqual([]);
  });
  it("tells of an event what its items say", async () => {
    const request = {
      run: "a",
      host: null,
      lane: "ledger",
      row: 0,
      start_ps: 4 * S,
      end_ps: 5 * S,
    };
    expect(await source.event(request)).toMatchObject({
      name: "input.wait",
      end_ps: 5 * S,
      causes: [["input.wait", S]],
    });
    await expect(source.event({ ...request, lane: "nobody" })).rejects.toThrow(
      "no further details about",
    );
  });
});
