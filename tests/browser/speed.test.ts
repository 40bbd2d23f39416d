/** The timeline stays smooth with a hundred thousand intervals on the screen. */

import { expect, it } from "vitest";
import { openTab, watchedPage } from "./browser";
import { setUpStage } from "./stage";
import { SAMPLES } from "./tensorboard";

const INTERVALS = 100_000;
const LANES = 10;
const FRAMES = 60;
const SLOW_FRAME_MS = 100; // of a core, whatever else the machine does

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

  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  const atWorkMs = async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    return 1000 * metrics.find(({ name }) => name === "TaskDuration")!.value;
  };

  const beganMs = await atWorkMs();
  await frame.evaluate(async (count) => {
    const element = document.querySelector(".timeline-surface")!;
    const box = element.getBoundingClientRect();
    for (let i = 0; i < count; i++) {
      const deltaY = i < count / 2 ? -60 : 60;
      const at = { clientX: box.left + 400, clientY: box.top + 200 };
      element.dispatchEvent(new WheelEvent("wheel", { deltaY, cancelable: true, ...at }));
      await new Promise(requestAnimationFrame);
    }
  }, FRAMES);
  const meanMs = ((await atWorkMs()) - beganMs) / FRAMES;

  console.info(`${INTERVALS} intervals: ${meanMs.toFixed(1)} ms of a core for a frame`);
  expect(meanMs).toBeGreaterThan(0);
  expect(meanMs).toBeLessThan(SLOW_FRAME_MS);
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
