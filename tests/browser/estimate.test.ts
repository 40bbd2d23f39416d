/** Runs of which little was traced: every part of the page shows the estimate, and says so. */

import { join } from "node:path";
import { expect, it } from "vitest";
import { openTab, violations } from "./browser";
import { answerInstead, freshPages, setUpStage, trueAnswerOf } from "./stage";
import { SAMPLES } from "./tensorboard";

const S = 1e12;
const WHOLE = 10 * S;
const NOTHING = { memory: 0, numerics: 0, communication: 0, profiler: 0 };
const PROBABLY = {
  ...NOTHING,
  ...{ input: 2 * S, compile: 5 * S, compute: 2.5 * S, host: 0.1 * S, unknown: 0.4 * S },
};

const stage = setUpStage(() => ["--logdir", join(SAMPLES, "healthy")]);
const watched = freshPages(stage);

/** The healthy run, had 3% of ten seconds been traced, and probably half of them been compile. */
async function partlyTraced(change: object = {}): Promise<any> {
  const ready = await trueAnswerOf(stage, "report?run=.");
  const { report } = ready;
  const ranges = Object.entries(PROBABLY).map(([bucket, ps]) => [
    bucket,
    { low: 0.8 * ps, high: 1.2 * ps },
  ]);
  Object.assign(report.window, { duration_ps: WHOLE, covered_ps: 0.03 * WHOLE });
  Object.assign(report.verdict, { primary: "compile" }, change);
  Object.assign(report, {
    buckets_ps: { ...PROBABLY, input: 0, compile: 0, compute: 0.3 * S, host: 0, unknown: 9.7 * S },
    phases: [
      { ...phase("first_step", 0, 5), error_ps: 0 },
      { ...phase("training", 5, 7), error_ps: S },
      { ...phase("validation", 7, 10), error_ps: 0 },
    ],
    estimate: {
      buckets_ps: PROBABLY,
      causes_ps: { "compile.tracing": 5 * S, "input.wait": 2 * S },
      one_time_ps: 5 * S,
      recurring_ps: 5 * S,
      ranges_ps: Object.fromEntries(ranges),
      rests_on: ["First step: its bounds are known.", "Steps: 1 profiled of 296."],
      estimated_ps: 9.7 * S,
      profiled_steps: 1,
      steps: 296,
    },
  });
  await answerInstead(watched.page, "report", ready);
  return ready;
}

function phase(name: string, start: number, end: number): object {
  const buckets_ps = { unknown: (end - start) * S };
  return { name, start_ps: start * S, end_ps: end * S, buckets_ps };
}

const open = () => openTab(watched.page, stage.board.url, { run: "." });

it("the page of a run has one bar, of the estimate, with ranges and what it rests on", async () => {
  await partlyTraced();
  const frame = await open();
  const section = frame.locator("#time-spent");
  await section.waitFor();
  expect(await section.locator(".stacked-bar").count()).toBe(1);
  expect(await section.locator(".stacked-bar").getAttribute("aria-label")).toBe(
    "estimated: input 20%, compile 50%, compute 25%, host 1%, unknown 4%",
  );
  const [first] = await section.locator(".bucket-table tbody").allInnerTexts();
  expect(first).toContain("5.00 s (4.00–6.00 s)");
  expect(first).toContain("tracing 5.00 s");
  const words = await section.locator(".estimate").innerText();
  expect(words).toContain(
    "Estimated, with the range of each bucket; only 3% of the epoch was traced",
  );
  expect(words).toContain("What this is based on");
  expect(words).toContain("Steps: 1 profiled of 296.");
});

it("what happens once and what comes back is estimated, too", async () => {
  await partlyTraced();
  const frame = await open();
  await frame.waitForSelector("#verdict .fact");
  const facts = await frame.locator("#verdict .fact").allInnerTexts();
  const told = facts.map((fact) => fact.replace(/\s*\n\s*/g, " "));
  expect(told).toContain("Once ~5.00 s");
  expect(told).toContain("Every epoch ~5.00 s");
  expect(told).toContain("Traced exactly 3%");
  expect(await frame.locator(".teach").count()).toBe(0);
});

it("phases say how far off they may be, and claim nothing of what was not traced", async () => {
  await partlyTraced();
  const frame = await open();
  const phases = frame.locator(".phase-table tbody tr");
  await phases.first().waitFor();
  const rows = await phases.allInnerTexts();
  expect(rows.map((row) => row.split(/\s*\t\s*/))).toEqual([
    ["first step", "5.00 s", "not traced"],
    ["training", "2.00 s ± 1.00 s", "not traced"],
    ["validation", "3.00 s ± 1.00 s", "not traced"],
  ]);
});

it("a verdict that cannot decide names its candidates, and what would decide", async () => {
  await partlyTraced({ candidates: ["compile", "input"] });
  const frame = await open();
  expect(await frame.locator("#verdict .candidates").innerText()).toBe("compile or input?");
  expect(await frame.locator(".teach").innerText()).toContain("What would settle it");
});

it.each(["light", "dark"])("all of it can be read by everybody, %s", async (look) => {
  await partlyTraced({ candidates: ["compile", "input"] });
  const frame = await open();
  await frame.waitForSelector(".estimate");
  if (look === "dark") await watched.page.evaluate(() => document.body.classList.add("dark-mode"));
  expect(await violations(frame)).toEqual([]);
});

it("the list of runs marks those that are estimated or undecided", async () => {
  const answer = await trueAnswerOf(stage, "runs");
  const [run] = answer.runs;
  const probably = { run: "probably", buckets_ps: PROBABLY, estimated: true };
  answer.runs = [run, { ...run, ...probably, candidates: ["compile", "input"] }];
  await answerInstead(watched.page, "runs", answer);
  const frame = await openTab(watched.page, stage.board.url);
  const row = (name: string) =>
    frame.locator(".runs-table tbody tr").filter({ has: frame.getByText(name, { exact: true }) });
  await row("probably").waitFor();
  expect(await row("probably").innerText()).toContain("compile or input?");
  expect(await row("probably").locator(".column-bar").innerText()).toBe("estimated");
  expect(await row("probably").locator(".stacked-bar").getAttribute("aria-label")).toMatch(
    /^estimated: input 20%/,
  );
  expect(await row("healthy").innerText()).not.toContain("estimated");
  expect(await row("healthy").locator(".candidates").count()).toBe(0);
});

it("two runs are compared by the figures that their own pages show", async () => {
  const answer = await trueAnswerOf(stage, "runs");
  answer.runs = [answer.runs[0], { ...answer.runs[0], run: "other" }];
  await answerInstead(watched.page, "runs", answer);
  await partlyTraced();
  const place = { view: "compare", run: ".", with: "other" };
  const frame = await openTab(watched.page, stage.board.url, place);
  await frame.locator(".difference-table").waitFor();
  const head = await frame.locator(".difference-table thead").innerText();
  expect(head).toContain("before, estimated");
  const compile = frame.locator(".difference-table tbody tr").filter({ hasText: "compile" });
  expect(await compile.innerText()).toContain("5.00 s · 50%");
});
