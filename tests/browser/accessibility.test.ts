/** axe-core finds nothing to complain about, in light and in dark, wide and narrow. */

import axe from "axe-core";
import type { Browser, Frame } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { launch, openTab, watchedPage } from "./browser";
import { SAMPLES, type TensorBoard, startTensorBoard } from "./tensorboard";

let board: TensorBoard;
let browser: Browser;

beforeAll(async () => {
  [board, browser] = await Promise.all([startTensorBoard("--logdir", SAMPLES), launch()]);
});
afterAll(async () => {
  await browser?.close();
  await board?.stop();
});

const NARROW = { viewport: { width: 400, height: 800 } };

const VIEWS: [string, Record<string, string>, string][] = [
  ["the list of runs", {}, ".runs-table .stacked-bar"],
  ["a run", { run: "input_py_function", finding: "ST001" }, ".lane-title"],
  ["a run without a trace", { run: "event_files_only" }, ".teach"],
  ["a comparison", { run: "input_py_function", view: "compare", with: "healthy" }, "#compare"],
];
const LOOKS = ["light", "dark", "narrow"] as const;

it.each(VIEWS.flatMap((view) => LOOKS.map((look) => [...view, look] as const)))(
  "%s",
  async (_, place, sign, look) => {
    const { page, close } = await watchedPage(browser, look === "narrow" ? NARROW : {});
    const frame = await openTab(page, board.url, place);
    await frame.waitForSelector(sign);
    if (look === "dark") await page.evaluate(() => document.body.classList.add("dark-mode"));
    for (const summary of await frame.locator(".manual summary").all()) await summary.click();
    expect(await violations(frame)).toEqual([]);
    await close();
  },
);

async function violations(frame: Frame): Promise<string[]> {
  await frame.evaluate(axe.source);
  const { violations: found } = await frame.evaluate(() =>
    // The page is one tab of TensorBoard: landmarks and headings of the whole are not ours.
    (window as any).axe.run("#stall", { resultTypes: ["violations"] }),
  );
  return found.flatMap(({ id, nodes }: axe.Result) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 120)} ${failureSummary}`),
  );
}

it("a narrow page does not scroll sideways", async () => {
  const { page, close } = await watchedPage(browser, NARROW);
  const frame = await openTab(page, board.url, { run: "input_py_function" });
  await frame.waitForSelector(".lane-title");
  const tooWide = await frame.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  expect(tooWide).toBeLessThanOrEqual(0);
  await close();
});
