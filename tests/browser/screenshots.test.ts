/** The pictures in docs/images, from the sample logs: `npm run screenshots`. */

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Page } from "playwright-core";
import { beforeAll, describe, it } from "vitest";
import { openTab, watchedPage } from "./browser";
import { setUpStage } from "./stage";
import { BIN, REPOSITORY, SAMPLES } from "./tensorboard";

const TARGET = process.env["SCREENSHOTS"] ?? "";
const FOLDER = join(REPOSITORY, TARGET);

interface Shot {
  name: string;
  place: Record<string, string>;
  sign: string;
  size?: { width: number; height: number };
  isDark?: boolean;
  /** Scrolls to this element first. */
  at?: string;
  /** The report, in the back end's place. */
  answer?: { state: string; [field: string]: unknown };
}

const SHOTS: Shot[] = [
  { name: "runs", place: {}, sign: ".runs-table .stacked-bar" },
  { name: "fleet", place: { view: "fleet" }, sign: "#fleet-runs" },
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
  {
    name: "hosts",
    place: { run: "communication_straggler" },
    sign: ".heat-map",
    at: "#hosts",
  },
  {
    name: "analyzing",
    place: { run: "healthy" },
    sign: "progress",
    answer: {
      state: "running",
      progress: { share: 0.42, text: "reading the trace of host: 66 MB of 117 MB" },
    },
    size: { width: 1440, height: 480 },
  },
  {
    name: "failed",
    place: { run: "healthy" },
    sign: "[role=alert]",
    answer: {
      state: "failed",
      error:
        "The analysis was stopped because it had made no progress for 7 minutes. A hung disk or network may be the reason.",
    },
    size: { width: 1440, height: 480 },
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
  const stage = setUpStage(() => ["--logdir", SAMPLES]);
  beforeAll(() => void mkdirSync(FOLDER, { recursive: true }));

  it.each(SHOTS)("$name", async ({ name, place, sign, size, isDark, at, answer }) => {
    const { page, close } = await watchedPage(stage.browser, size ? { viewport: size } : {});
    if (answer) await answerInstead(page, place["run"]!, answer);
    const frame = await openTab(page, `${stage.board.url}${isDark ? "?darkMode=true" : ""}`, place);
    await frame.waitForSelector(sign);
    await page.waitForTimeout(1500); // the glide, and the finer timeline
    if (at) await frame.locator(at).evaluate((element) => element.scrollIntoView());
    await page.screenshot({ path: join(FOLDER, `${name}.png`) });
    await close();
  });

  it("paper", async () => {
    const report = join(mkdtempSync(join(tmpdir(), "stall-paper-")), "report.html");
    const options = ["sample_logs/input_py_function", "--html", report];
    spawnSync(join(BIN, "stall-analyze"), options, { cwd: dirname(SAMPLES) });
    const { page, close } = await watchedPage(stage.browser);
    await page.goto(pathToFileURL(report).href);
    await page.waitForSelector(".lane-title");
    await page.emulateMedia({ media: "print" });
    await page.waitForTimeout(1500);
    await page.screenshot({ path: join(FOLDER, "paper.png"), fullPage: true });
    await close();
  });

  it("terminal", async () => {
    const show = ["-m", "scripts.terminal_page", "sample_logs/input_py_function"];
    const { stdout } = spawnSync(join(BIN, "python"), show, { cwd: REPOSITORY });
    const { page, close } = await watchedPage(stage.browser);
    await page.setContent(stdout.toString());
    await page.addStyleTag({ content: "pre { display: inline-block; margin: 0; padding: 16px }" });
    await page.locator("pre").screenshot({ path: join(FOLDER, "terminal.png") });
    await close();
  });
});

/** The report of a run as given, and its state in the list of runs. */
async function answerInstead(page: Page, run: string, answer: { state: string }): Promise<void> {
  await page.route(/plugin\/stall\/report/, (route) => route.fulfill({ json: answer }));
  await page.route(/plugin\/stall\/runs/, async (route) => {
    const all = await (await route.fetch()).json();
    const runs = all.runs.map((one: any) => (one.run === run ? { ...one, ...answer } : one));
    return route.fulfill({ json: { ...all, runs } });
  });
}
