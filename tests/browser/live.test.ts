/** Runs that go on: the tab follows them by itself, and says why a verdict has changed. */

import { expect, it } from "vitest";
import { openTab, violations } from "./browser";
import { answerInstead, freshPages, setUpStage, trueAnswerOf } from "./stage";
import { SAMPLES } from "./tensorboard";

const stage = setUpStage(() => ["--logdir", SAMPLES]);
const watched = freshPages(stage);
const RUN = "input_py_function";

const process = (text: string, fields: object = {}) => ({
  name: "",
  text,
  now: "",
  late: false,
  buckets_ps: { input: 71, compute: 29 },
  ...fields,
});
const CHANGE = {
  unix_s: 1_800_000_000,
  status: "running",
  sentence: "Still running: step 56 of 200.",
  why: "the first epoch ended after 14.0 s.",
};

/** The list of runs, in which the one that we look at is as given. */
async function runsWith(fields: object): Promise<any> {
  const answer = await trueAnswerOf(stage, "runs");
  const runs = answer.runs.map((one: any) => (one.run === RUN ? { ...one, ...fields } : one));
  return { ...answer, runs };
}

it("says how far a run is, and goes on saying it", async () => {
  const live = (step: number) => ({
    live: { processes: [process(`step ${step} of 200, 71% waiting for input`)], stall: "" },
  });
  const answers = await Promise.all([56, 57, 58].map((step) => runsWith(live(step))));
  await answerInstead(watched.page, "runs", ...answers);
  const frame = await openTab(watched.page, stage.board.url, { run: RUN });
  const said = () => frame.locator(".live").innerText();
  await expect.poll(said).toContain("Running: step 58 of 200, 71% waiting for input");
  expect(await violations(frame)).toEqual([]);
});

it("shows it in the list, with the one that is late and what holds it up", async () => {
  const processes = [
    process("step 5 of 50", { name: "worker 0" }),
    process("step 5 of 50", { name: "worker 1" }),
    process("step 3 of 50, 90% waiting for input", { name: "worker 2", late: true }),
  ];
  await answerInstead(watched.page, "runs", await runsWith({ live: { processes, stall: "" } }));
  const frame = await openTab(watched.page, stage.board.url, { view: "runs" });
  const row = frame.locator(".runs-table tbody tr", { hasText: RUN });
  expect(await row.innerText()).toContain(
    "Running: worker 2 is late: step 3 of 50, 90% waiting for input; 2 workers are waiting",
  );
});

it("never changes its verdict without saying why", async () => {
  const report = await trueAnswerOf(stage, `report?run=${RUN}`);
  const running = structuredClone(report);
  running.report.verdict = { ...running.report.verdict, status: "running", sentence: "Still on." };
  running.version = "earlier";
  const live = { processes: [process("step 56 of 200")], stall: "" };
  await answerInstead(watched.page, "runs", await runsWith({ live }));
  await answerInstead(watched.page, "report", running, { ...report, changes: [CHANGE] });
  const frame = await openTab(watched.page, stage.board.url, { run: RUN });
  const verdict = () => frame.locator("#verdict").innerText();
  await expect.poll(verdict).toContain("Still on.");
  await expect.poll(verdict).toContain("Slow in every epoch");
  expect(await verdict()).toMatch(/Changed from “Still running” at .*: the first epoch ended/);
});

it("leaves the timeline as it is while somebody looks at a part of it", async () => {
  const report = await trueAnswerOf(stage, `report?run=${RUN}`);
  const live = { processes: [process("step 56 of 200")], stall: "" };
  await answerInstead(watched.page, "runs", await runsWith({ live }));
  await answerInstead(watched.page, "report", report, { ...report, version: "newer" });
  const frame = await openTab(watched.page, stage.board.url, { run: RUN, finding: "ST001" });
  await frame.getByRole("button", { name: "Show the latest report" }).click();
  await expect.poll(() => frame.locator(".newer").count()).toBe(0);
});
