/** The timeline stays smooth with a hundred thousand intervals on the screen. */

import { expect, it } from "vitest";
import { openTab, watchedPage } from "./browser";
import { setUpStage } from "./stage";
import { SAMPLES } from "./tensorboard";

const INTERVALS = 100_000;
const LANES = 10;
const FRAMES = 60;
const SLOW_FRAME_MS = 100; // generous: a busy machine without a graphics card

const stage = setUpStage(() => ["--logdir", SAMPLES]);

it("zooms with short frames", async () => {
  const { page, close } = await watchedPage(stage.browser);
  await page.route(/plugin\/stall\/timeline/, async (route) => {
    const answer = await (await route.fetch()).json();
    return route.fulfill({
      json: { ...answer, ...crowded(answer.duration_ps) },
    });
  });
  const frame = await openTab(page, stage.board.url, { run: "compile_tracing" });
  await frame.waitForSelector(".lane-title");
  const surface = frame.locator(".timeline-surface");
  await surface.scrollIntoViewIfNeeded();
  await surface.click({ position: { x: 400, y: 200 } });

  const times = await frame.evaluate(async (count) => {
    const element = document.querySelector(".timeline-surface")!;
    const box = element.getBoundingClientRect();
    const durations: number[] = [];
    let last = await new Promise(requestAnimationFrame);
    for (let i = 0; i < count; i++) {
      const deltaY = i < count / 2 ? -60 : 60;
      const at = { clientX: box.left + 400, clientY: box.top + 200 };
      element.dispatchEvent(new WheelEvent("wheel", { deltaY, cancelable: true, ...at }));
      const now = await new Promise(requestAnimationFrame);
      durations.push((now as number) - (last as number));
      last = now;
    }
    return durations;
  }, FRAMES);

  times.sort((a, b) => a - b);
  const [median, worst] = [times[FRAMES >> 1]!, times[FRAMES - 1]!];
  console.info(
    `${INTERVALS} intervals: median frame ${median.toFixed(1)} ms, longest ${worst.toFixed(1)} ms`,
  );
  expect(median).toBeLessThan(SLOW_FRAME_MS);
  await close();
});

/** Lanes as full as no back end would send them: the page's own worst case. */
function crowded(durationPs: number): object {
  const perLane = INTERVALS / LANES;
  const lanes = Array.from({ length: LANES }, (_, lane) => ({
    id: `crowded/${lane}`,
    title: `lane ${lane}`,
    group: "input",
    depth: 1,
    items: Array.from({ length: perLane }, (_, i) => {
      const start = (durationPs * i) / perLane;
      return [start, start + (0.8 * durationPs) / perLane, i % 20, 0, 1];
    }),
  }));
  return { lanes, names: Array.from({ length: 20 }, (_, i) => `event ${i}`) };
}
