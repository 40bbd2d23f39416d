/** The pictures in docs/images, from the sample logs: `npm run screenshots`. */

import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, it } from "vitest";
import { launch, openTab, watchedPage } from "./browser";
import { BIN, REPOSITORY, SAMPLES, type TensorBoard, startTensorBoard } from "./tensorboard";

const TARGET = process.env["SCREENSHOTS"] ?? "";
const FOLDER = join(REPOSITORY, TARGET);

let board: TensorBoard;
let browser: Browser;

interface Shot {
  name: string;
  place: Record<string, string>;
  sign: string;
  size?: { width: number; height: number };
  isDark?: boolean;
  /** Scrolls to this element first. */
  at?: string;
}

const SHOTS: Shot[] = [
  { name: "runs", place: {}, sign: ".runs-table .stacked-bar" },
  { name: "run", place: { run: "input_py_function" }, sign: ".lane-title" },
  {
    name: "run-dark",
    place: { run: "numerics_nan" },
    sign: ".lane-title",
    isDark: true,
  },
  {
    name: "timeline",
    place: { run: "compile_tracing", finding: "ST101" },
    sign: ".lane-title",
    at: "#timeline",
  },
  {
    name: "changes",
    place: { run: "mixed_host_and_input" },
    sign: ".lane-title",
    at: "#changes",
  },
  {
    name: "compare",
    place: { run: "input_py_function", view: "compare", with: "healthy" },
    sign: "#compare",
  },
  { name: "no-profile", place: { run: "event_files_only" }, sign: ".teach" },
  {
    name: "narrow",
    place: { run: "memory_allocator_wait" },
    sign: ".lane-title",
    size: { width: 420, height: 900 },
  },
];

describe.skipIf(!TARGET)("screenshots", () => {
  beforeAll(async () => {
    mkdirSync(FOLDER, { recursive: true });
    [board, browser] = await Promise.all([startTensorBoard("--logdir", SAMPLES), launch()]);
  });
  afterAll(async () => {
    await browser?.close();
    await board?.stop();
  });

  it.each(SHOTS)("$name", async ({ name, place, sign, size, isDark, at }) => {
    const { page, close } = await watchedPage(browser, size ? { viewport: size } : {});
    const frame = await openTab(page, `${board.url}${isDark ? "?darkMode=true" : ""}`, place);
    await frame.waitForSelector(sign);
    await page.waitForTimeout(1500); // the glide, and the finer timeline
    if (at) await frame.locator(at).evaluate((element) => element.scrollIntoView());
    await page.screenshot({ path: join(FOLDER, `${name}.png`) });
    await close();
  });

  it("terminal", async () => {
    const show = ["-m", "scripts.terminal_page", "sample_logs/input_py_function"];
    const { stdout } = spawnSync(join(BIN, "python"), show, { cwd: REPOSITORY });
    const { page, close } = await watchedPage(browser);
    await page.setContent(stdout.toString());
    await page.addStyleTag({ content: "pre { display: inline-block; margin: 0; padding: 16px }" });
    await page.locator("pre").screenshot({ path: join(FOLDER, "terminal.png") });
    await close();
  });
});
