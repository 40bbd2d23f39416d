/**
 * How smooth the timeline is with a hundred thousand intervals on the screen: the time from frame to
 * frame while it is zoomed, while events are chosen one after the other, and while a stretch is
 * dragged open. Run by `npm --prefix frontend run frames`; at sixty frames per second, one takes 16.7 ms.
 */

import type { Frame } from "playwright-core";
import { expect, it } from "vitest";
import type { Item, TimelineAnswer } from "../frontend/src/types";
import { packed } from "../frontend/test/pack";
import { openTab, watchedPage } from "../tests/browser/browser";
import { setUpStage } from "../tests/browser/stage";
import { SAMPLES } from "../tests/browser/tensorboard";

const INTERVALS = 100_000;
const LANES = 10;
const FRAMES = 120;

const stage = setUpStage(() => ["--logdir", SAMPLES]);

/** What is done before each frame; runs in the page. */
const MOVES: Record<string, (element: Element, i: number, count: number) => void> = {
  zooming: (element, i, count) => {
    const box = element.getBoundingClientRect();
    const at = { clientX: box.left + 400, clientY: box.top + 60 };
    const deltaY = i < count / 2 ? -60 : 60;
    element.dispatchEvent(new WheelEvent("wheel", { deltaY, cancelable: true, ...at }));
  },
  selecting: (element, i) => {
    const key = i % 10 === 9 ? "ArrowDown" : "ArrowRight";
    element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  },
  dragging: (element, i) => {
    const box = element.getBoundingClientRect();
    const at = { clientX: box.left + 100 + 4 * i, clientY: box.top + 60, bubbles: true };
    if (i === 0) element.dispatchEvent(new PointerEvent("pointerdown", { button: 0, ...at }));
    element.dispatchEvent(new PointerEvent("pointermove", at));
  },
};

it.each(Object.keys(MOVES))("%s", async (name) => {
  const { page, close } = await watchedPage(stage.browser, {
    viewport: { width: 1920, height: 1080 },
  });
  await page.route(/plugin\/stall\/timeline/, async (route) => {
    const answer = await (await route.fetch()).json();
    return route.fulfill({ json: packed({ ...answer, ...crowded(answer.duration_ps) }) });
  });
  const frame = await openTab(page, stage.board.url, { run: "compile_tracing" });
  await frame.waitForSelector(".lane-title");
  const surface = frame.locator(".timeline-surface");
  await surface.click({ position: { x: 400, y: 60 } });
  const times = await framesOf(frame, MOVES[name]!.toString());
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(share * (times.length - 1))]!.toFixed(1);
  console.info(
    `${INTERVALS} intervals, ${name}: median frame ${at(0.5)} ms, nine of ten below ${at(0.9)} ms, longest ${at(1)} ms`,
  );
  expect(times).toHaveLength(FRAMES);
  await close();
});

function framesOf(frame: Frame, move: string): Promise<number[]> {
  return frame.evaluate(
    async ({ move, count }) => {
      const act = new Function(`return (${move})`)();
      const element = document.querySelector(".timeline-surface")!;
      // Only the pointer's owner can be captured, and nobody holds one here.
      (element as HTMLElement).setPointerCapture = () => undefined;
      const durations: number[] = [];
      let last = await new Promise<number>(requestAnimationFrame);
      for (let i = 0; i < count; i++) {
        act(element, i, count);
        const now = await new Promise<number>(requestAnimationFrame);
        durations.push(now - last);
        last = now;
      }
      return durations;
    },
    { move, count: FRAMES },
  );
}

/** Lanes as full as no back end would send them: the page's own worst case. */
function crowded(durationPs: number): Partial<TimelineAnswer> {
  const perLane = INTERVALS / LANES;
  const lanes = Array.from({ length: LANES }, (_, lane) => ({
    id: `crowded/${lane}`,
    title: `lane ${lane}`,
    group: "input" as const,
    depth: 1,
    rows: 1,
    items: Array.from({ length: perLane }, (_, i): Item => {
      const start = Math.floor((durationPs * i) / perLane);
      return [start, start + Math.floor((0.8 * durationPs) / perLane), i % 20, 0, 1];
    }),
  }));
  return { lanes, series: [], names: Array.from({ length: 20 }, (_, i) => `event ${i}`) };
}
