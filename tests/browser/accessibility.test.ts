/** axe-core finds nothing to complain about, in light and in dark, wide and narrow. */

import { expect, it } from "vitest";
import { openTab, violations, watchedPage } from "./browser";
import { setUpStage } from "./stage";
import { SAMPLES } from "./tensorboard";

const stage = setUpStage(() => ["--logdir", SAMPLES]);

const NARROW = { viewport: { width: 400, height: 800 } };

/** Where it is, and what shows that it is there; perhaps an answer in the back end's place. */
interface View {
  name: string;
  place: Record<string, string>;
  sign: string;
  route?: string;
  answer?: object;
}

const VIEWS: View[] = [
  { name: "the list of runs", place: {}, sign: ".runs-table .stacked-bar" },
  { name: "the fleet", place: { view: "fleet" }, sign: "#fleet-runs" },
  {
    name: "runs with one finding",
    place: { view: "runs", only: "bucket:input" },
    sign: ".facet.chosen",
  },
  { name: "a run", place: { run: "input_py_function", finding: "ST001" }, sign: ".lane-title" },
  { name: "several hosts", place: { run: "communication_straggler" }, sign: ".heat-map" },
  { name: "a run that learns nothing", place: { run: "numerics_nan" }, sign: "#learning svg" },
  { name: "a run without a trace", place: { run: "event_files_only" }, sign: ".teach" },
  {
    name: "a comparison",
    place: { run: "input_py_function", view: "compare", with: "healthy" },
    sign: "#compare",
  },
  {
    name: "a choice of what to compare with",
    place: { run: "input_py_function", view: "compare" },
    sign: ".runs-table .stacked-bar",
  },
  {
    name: "an analysis at work",
    place: { run: "healthy" },
    sign: "[role=status] progress",
    route: "report",
    answer: { state: "running", progress: { share: 0.4, text: "reading the trace of vm" } },
  },
  {
    name: "an analysis that failed",
    place: { run: "healthy" },
    sign: "[role=alert]",
    route: "report",
    answer: { state: "failed", error: "The file vanished while it was read." },
  },
  {
    name: "no run at all",
    place: {},
    sign: ".state h1",
    route: "runs",
    answer: {
      runs: [],
      problems: [{ level: "error", text: "logs does not exist", where: "logs" }],
      logdir: "logs",
      capture: "with tf.profiler.experimental.Profile(logdir):",
      profile_plugin: false,
      version: "0",
    },
  },
  {
    name: "a great many runs",
    place: {},
    sign: ".pager",
    route: "runs",
    answer: { runs: manyRuns(), problems: [], logdir: "", capture: "", profile_plugin: false },
  },
];
const LOOKS = ["light", "dark", "narrow"] as const;

it.each(VIEWS.flatMap((view) => LOOKS.map((look) => ({ ...view, look }))))(
  "$name, $look",
  async ({ place, sign, route, answer, look }) => {
    const { page, close } = await watchedPage(stage.browser, look === "narrow" ? NARROW : {});
    if (route) {
      const question = new RegExp(`/plugin/stall/${route}(\\?|$)`);
      await page.route(question, (request) => request.fulfill({ json: answer }));
    }
    const frame = await openTab(page, stage.board.url, place);
    await frame.waitForSelector(sign);
    if (look === "dark") await page.evaluate(() => document.body.classList.add("dark-mode"));
    for (const summary of await frame.locator(".manual summary").all()) await summary.click();
    expect(await violations(frame)).toEqual([]);
    await close();
  },
);

function manyRuns(): object[] {
  return Array.from({ length: 120 }, (_, i) => ({
    run: `run${i}`,
    state: i % 2 ? "unread" : "failed",
    progress: null,
    error: i % 2 ? null : "No memory left.",
    live: null,
    changes: [],
  }));
}

it.each(["input_py_function", "numerics_nan"])(
  "%s does not scroll sideways at 390",
  async (run) => {
    const phone = { viewport: { width: 390, height: 800 } };
    const { page, close } = await watchedPage(stage.browser, phone);
    const frame = await openTab(page, stage.board.url, { run });
    await frame.waitForSelector(".lane-title");
    await frame.locator("#timeline").evaluate((element) => element.scrollIntoView());
    await frame.locator(".timeline-surface").click({ position: { x: 120, y: 15 } });
    await frame.waitForSelector(".event-panel dl");
    const tooWide = await frame.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    expect(tooWide).toBeLessThanOrEqual(0);
    await close();
  },
);
