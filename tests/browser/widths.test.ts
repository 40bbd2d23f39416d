/**
 * Every view at every width, from a phone to a large screen: nothing is wider than the window, nothing
 * that can be read lies beyond an edge, and axe-core has nothing to complain about. `VIEWS=folder npm
 * run test:browser -- widths` keeps a picture of each, light and dark.
 */

import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Frame, Page } from "playwright-core";
import { expect, it } from "vitest";
import { openTab, violations, watchedPage } from "./browser";
import { setUpStage, trueAnswerOf } from "./stage";
import { REPOSITORY, SAMPLES } from "./tensorboard";

const FOLDER = process.env["VIEWS"] ? resolve(REPOSITORY, process.env["VIEWS"]) : "";
if (FOLDER) mkdirSync(FOLDER, { recursive: true });
const WIDTHS = [390, 768, 1000, 1440, 1920];
const HEIGHT = 1000;
const TALLEST = 6000;
const SETTLED_MS = 60_000;

const stage = setUpStage(() => ["--logdir", SAMPLES]);

interface View {
  name: string;
  place: Record<string, string>;
  sign: string;
  /** What is done before one looks. */
  then?: (frame: Frame, page: Page) => Promise<unknown>;
  /** Changes the back end's answers. */
  change?: (page: Page) => Promise<unknown>;
}

const VIEWS: View[] = [
  { name: "runs", place: {}, sign: ".runs-table .stacked-bar" },
  {
    name: "filtered",
    place: { view: "runs", only: "status:slow_always;text:python" },
    sign: ".facet.chosen",
  },
  { name: "fleet", place: { view: "fleet" }, sign: "#fleet-runs" },
  { name: "input", place: { run: "input_py_function" }, sign: ".lane-title" },
  {
    name: "manual",
    place: { run: "input_py_function", finding: "ST001" },
    sign: ".lane-title",
    then: (frame) => frame.locator(".manual summary").first().click(),
  },
  {
    name: "event",
    place: { run: "compile_tracing" },
    sign: ".lane-title",
    then: async (frame) => {
      await frame.locator(".timeline-surface").click({ position: { x: 120, y: 15 } });
      await frame.waitForSelector(".event-panel dl");
    },
  },
  {
    name: "picker",
    place: { run: "healthy" },
    sign: ".lane-title",
    then: (frame) => frame.getByRole("combobox", { name: "Run", exact: true }).click(),
  },
  { name: "healthy", place: { run: "healthy" }, sign: "#computing" },
  { name: "learning", place: { run: "numerics_nan" }, sign: "#learning svg" },
  { name: "hosts", place: { run: "communication_straggler" }, sign: ".heat-map" },
  { name: "no-profile", place: { run: "event_files_only" }, sign: ".teach" },
  { name: "live", place: { run: "input_py_function" }, sign: ".live", change: goesOn },
  {
    name: "compare",
    place: { run: "input_py_function", view: "compare", with: "healthy" },
    sign: "#compare",
  },
];

/** As if it were captured, and went on. */
async function goesOn(page: Page): Promise<void> {
  const answer = await trueAnswerOf(stage, "runs");
  const buckets_ps = { input: 71, compute: 29 };
  const text = "epoch 1, step 56 of 200, 71% waiting for input (train.py:25 load)";
  const usual = { name: "worker 0", text, now: "", late: false, buckets_ps };
  const late = { ...usual, name: "worker 2", late: true, now: "waiting for a batch for 12 s" };
  const live = { processes: [usual, { ...usual, name: "worker 1" }, late], stall: "" };
  const runs = answer.runs.map((one: any) => ({ ...one, live }));
  await page.route(/plugin\/stall\/runs/, (route) => route.fulfill({ json: { ...answer, runs } }));
}

// What the colors are changes no width.
const THEMES = FOLDER ? ["light", "dark"] : ["light"];

it.each(VIEWS.flatMap((view) => THEMES.map((theme) => ({ ...view, theme }))))(
  "$name, $theme",
  async ({ name, place, sign, then, change, theme }) => {
    const { page, close } = await watchedPage(stage.browser);
    await change?.(page);
    const frame = await openTab(page, stage.board.url, place);
    await frame.waitForSelector(sign);
    if (theme === "dark") await page.evaluate(() => document.body.classList.add("dark-mode"));
    await then?.(frame, page);
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: HEIGHT });
      await expect.poll(() => frame.evaluate(() => window.innerWidth)).toBe(width);
      // Canvases follow the window a moment later.
      await expect.poll(() => beyondTheEdge(frame), { timeout: SETTLED_MS }).toEqual([]);
      if (FOLDER) await keep(page, frame, `${name}-${theme}-${width}`);
    }
    expect(await violations(frame)).toEqual([]);
    await close();
  },
);

/** Texts that no scrolling of the page would bring into sight. */
function beyondTheEdge(frame: Frame): Promise<string[]> {
  return frame.evaluate(() => {
    const page = document.documentElement;
    const found = page.scrollWidth > page.clientWidth ? [`page is ${page.scrollWidth} wide`] : [];
    const cells = document.querySelectorAll("#stall :is(h1, h2, h3, p, button, td, th, dd, input)");
    for (const cell of cells) {
      const { left, right, width } = cell.getBoundingClientRect();
      const scrolls = cell.closest(".timeline-lanes, .flame-graph, .visually-hidden, thead");
      if (width > 1 && !scrolls && (left < -1 || right > page.clientWidth + 1)) {
        found.push(`${cell.tagName} ${cell.textContent?.slice(0, 40)}`);
      }
    }
    return found;
  });
}

async function keep(page: Page, frame: Frame, name: string): Promise<void> {
  await page.waitForTimeout(600); // the canvases, and the finer timeline
  await page.screenshot({ path: join(FOLDER, `${name}.png`) });
  const height = await frame.evaluate(() => document.documentElement.scrollHeight);
  const { width } = page.viewportSize()!;
  await page.setViewportSize({ width, height: Math.min(height + 66, TALLEST) });
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(FOLDER, `${name}-all.png`) });
  await page.setViewportSize({ width, height: HEIGHT });
}
