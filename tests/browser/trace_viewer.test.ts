/** The one link into a page that XProf does not document: it opens at the time of the evidence. */

import { expect, it } from "vitest";
import { openTab, watchedPage } from "./browser";
import { setUpStage } from "./stage";
import { SAMPLES } from "./tensorboard";

const stage = setUpStage(() => ["--logdir", SAMPLES]);

it("a piece of evidence opens in the trace viewer, at its own time", async () => {
  const { page, close } = await watchedPage(stage.browser);
  // The tab asks the Profile plugin for its sessions, without which it would not know them.
  const awake = page.waitForResponse(/plugin\/profile\/runs/);
  const frame = await openTab(page, stage.board.url, { run: "compile_tracing" });
  await awake;
  const link = frame.locator(".trace-link").nth(1);
  const href = (await link.getAttribute("href"))!;
  const [startMs, endMs] = evidenceMs(new URL(href));

  const viewer = await watchedPage(stage.browser);
  const answered = viewer.page.waitForResponse(/plugin\/profile\/data\?/);
  await viewer.page.goto(href);
  const answer = await answered;
  expect(answer.status()).toBe(200);
  const asked = new URL(answer.url()).searchParams;
  expect(Number(asked.get("start_time_ms"))).toBeLessThanOrEqual(startMs);
  expect(Number(asked.get("end_time_ms"))).toBeGreaterThanOrEqual(endMs);
  const { traceEvents } = await answer.json();
  // The trace counts in microseconds; the evidence begins and ends where events of the trace do.
  const boundaries = traceEvents.flatMap(({ ts = Infinity, dur = 0 }) => [
    ts / 1000,
    (ts + dur) / 1000,
  ]);
  for (const ms of [startMs, endMs]) {
    expect(Math.min(...boundaries.map((at: number) => Math.abs(at - ms)))).toBeLessThan(0.002);
  }
  await viewer.close();
  await close();
});

/** The link shows a fifth of the evidence's length on each side of it. */
function evidenceMs({ searchParams }: URL): [number, number] {
  const [start, end] = ["view_start", "view_end"].map((name) => Number(searchParams.get(name)));
  const context = ((end! - start!) / 1.4) * 0.2;
  return [start! + context, end! - context];
}
