/** Waiting, failing, being empty, being attacked: the page says what is going on. */

import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Finding } from "../../frontend/src/types";
import { openTab, stallFrame } from "./browser";
import { answerInstead, freshPages, setUpStage, trueAnswerOf } from "./stage";
import { SAMPLES, startTensorBoard } from "./tensorboard";

const stage = setUpStage(() => ["--logdir", join(SAMPLES, "healthy")]);
const watched = freshPages(stage);
const trueAnswer = (route: string) => trueAnswerOf(stage, route);

it("a single run is opened at once", async () => {
  const frame = await openTab(watched.page, stage.board.url);
  await frame.waitForSelector("#verdict h1");
});

describe("an analysis that takes its time", () => {
  it("shows how far it is, and then the report", async () => {
    const ready = await trueAnswer("report?run=.");
    const running = {
      state: "running",
      progress: { share: 0.4, text: "reading traces" },
    };
    await answerInstead(watched.page, "report", running, running, ready);
    const frame = await openTab(watched.page, stage.board.url, { run: "." });
    await frame.waitForSelector("[role=status] progress");
    expect(await frame.locator("progress").getAttribute("value")).toBe("0.4");
    expect(await frame.locator("[role=status]").innerText()).toContain("reading traces");
    await frame.waitForSelector("#verdict h1");
  });

  it("that fails says why, and can be tried again", async () => {
    const failed = {
      state: "failed",
      error: "The file vanished while it was read.",
    };
    await answerInstead(watched.page, "report", failed, await trueAnswer("report?run=."));
    const frame = await openTab(watched.page, stage.board.url, { run: "." });
    await frame.waitForSelector("[role=alert]");
    expect(await frame.locator("[role=alert]").innerText()).toContain("vanished");
    const asked = watched.page.waitForRequest(/report\?.*again=/);
    await frame.getByRole("button", { name: "Try again" }).click();
    await asked;
    await frame.waitForSelector("#verdict h1");
  });
});

it("a list with runs in every state shows each", async () => {
  const runs = await trueAnswer("runs");
  const [run] = runs.runs;
  const other = (name: string, change: object) => ({
    ...run,
    run: name,
    ...change,
  });
  const progress = { share: 0.5, text: "second of two files" };
  await answerInstead(watched.page, "runs", {
    ...runs,
    problems: [{ level: "warning", text: "A folder could not be listed.", where: "x" }],
    runs: [
      run,
      other("busy", {
        state: "running",
        progress,
        status: null,
        buckets_ps: null,
        findings: null,
      }),
      other("broken", {
        state: "failed",
        error: "No memory left.",
        status: null,
        buckets_ps: null,
      }),
    ],
  });
  const frame = await openTab(watched.page, stage.board.url);
  await frame.waitForSelector(".runs-table");
  const text = await frame.locator("main").innerText();
  for (const part of ["second of two files", "No memory left.", "A folder could not be listed."]) {
    expect(text).toContain(part);
  }
});

it("of many notes only the gravest are above the answer", async () => {
  const runs = await trueAnswer("runs");
  const notes = Array.from({ length: 9 }, (_, i) => ({ level: "warning", text: `note ${i}` }));
  const other = { level: "info", text: "Two attempts wrote into another run's folder." };
  const problems = [other, ...notes, { level: "error", text: "A disk is gone." }];
  await answerInstead(watched.page, "runs", { ...runs, problems });
  const frame = await openTab(watched.page, stage.board.url);
  await frame.waitForSelector(".notes");
  expect(await frame.locator("main").innerText()).toMatch(/A disk is gone.[^]*And 7 more notes/);
  expect(await frame.getByText("note 8").isVisible()).toBe(false);
  expect(await frame.getByText("Two attempts").count()).toBe(0);
});

it("without any run the page teaches how to capture one", async () => {
  const empty = mkdtempSync(join(tmpdir(), "stall-empty-"));
  const other = await startTensorBoard("--logdir", empty);
  try {
    const frame = await openTab(watched.page, other.url);
    await frame.waitForSelector(".state h1");
    expect(await frame.locator(".state").innerText()).toContain("tf.profiler.experimental.Profile");
  } finally {
    await other.stop();
  }
});

it("names that look like code are shown as text", async () => {
  const hostile = `<img src=x onerror="document.title='owned'"><script>alert(1)</script>`;
  const ready = await trueAnswer("report?run=.");
  const timeline = await trueAnswer(`timeline?run=.&start_ps=0&end_ps=1000000000000&pixels=100`);
  const evidence = [{ host: hostile, line: hostile, start_ps: 0, end_ps: 1e12, label: hostile }];
  const finding: Finding = {
    id: "ST104",
    name: "retracing",
    bucket: "compile",
    severity: "act",
    lost_ps: 1e12,
    gain_ps: { low: 0, high: 1e12 },
    later_gain_ps: { low: 0, high: 0 },
    later_gain_at_least: false,
    confidence: 1,
    title: hostile,
    explanation: hostile.repeat(1000),
    change: { text: hostile, before: hostile, after: hostile, turns: { cache: hostile } },
    blames: ["compile"],
    estimated: false,
    lines: [
      {
        bucket: "compile",
        cause: "compile.tracing",
        path: hostile,
        line: 1,
        function: hostile,
        ps: 1e12,
        source: hostile,
        name: hostile,
        background: false,
      },
    ],
    stack: [hostile],
    evidence,
  };
  ready.report.findings = [finding];
  ready.report.verdict.sentence = hostile;
  timeline.names = timeline.names.map(() => hostile + "\u202e".repeat(50) + "x".repeat(100_000));
  for (const lane of timeline.lanes) lane.title = hostile;
  await answerInstead(watched.page, "report", ready);
  await answerInstead(watched.page, "timeline", timeline);
  const frame = await openTab(watched.page, stage.board.url, { run: "." });
  await frame.waitForSelector(".lane-title");
  await frame.locator(".timeline-surface").hover({ position: { x: 300, y: 220 } });
  expect(await frame.locator("#verdict h1").innerText()).toBe(hostile);
  expect(await frame.locator("#stall img, #stall script").count()).toBe(0);
  expect(await frame.title()).not.toBe("owned");
});

it("folders that look like code are shown as text", async () => {
  const logdir = mkdtempSync(join(tmpdir(), "stall-hostile-"));
  const hostile = `<img src=x onerror="document.title='owned'">&amp;\u202e 'x'`;
  for (const name of [hostile, "other"]) {
    cpSync(join(SAMPLES, "healthy"), join(logdir, name), { recursive: true });
  }
  const other = await startTensorBoard("--logdir", logdir);
  try {
    const frame = await openTab(watched.page, other.url);
    await frame.getByRole("button", { name: hostile, exact: true }).click();
    await frame.waitForSelector(".lane-title");
    expect(await frame.getByRole("combobox").inputValue()).toContain(hostile);
    expect(await frame.locator("#stall img, #stall script").count()).toBe(0);
    await watched.page.reload(); // the name is in the address, too
    const again = await stallFrame(watched.page);
    await again.waitForSelector(".lane-title");
    expect(await again.title()).not.toBe("owned");
    await watched.page.goto("about:blank"); // TensorBoard's page would miss its server
  } finally {
    await other.stop();
  }
});

it("a run that is deleted while one looks at it is said to be gone", async () => {
  const logdir = mkdtempSync(join(tmpdir(), "stall-gone-"));
  for (const run of ["healthy", "numerics_nan"]) {
    cpSync(join(SAMPLES, run), join(logdir, run), { recursive: true });
  }
  const other = await startTensorBoard("--logdir", logdir);
  try {
    const frame = await openTab(watched.page, other.url, { run: "healthy" });
    await frame.waitForSelector("#verdict h1");
    rmSync(join(logdir, "healthy"), { recursive: true });
    await new Promise((resolve) => setTimeout(resolve, 1500)); // folders are remembered for a second
    await watched.page.reload();
    const again = await stallFrame(watched.page);
    await again.waitForSelector("[role=alert]");
    expect(await again.locator("[role=alert]").innerText()).toContain("there is no such run");
    watched.complaints.length = 0; // the browser itself reports the 404
    await watched.page.goto("about:blank");
  } finally {
    await other.stop();
  }
});

it("a profile of one batch teaches how to capture all of the epoch", async () => {
  const ready = await trueAnswer("report?run=.");
  ready.report.window.covered_ps = ready.report.window.duration_ps / 50;
  await answerInstead(watched.page, "report", ready);
  const frame = await openTab(watched.page, stage.board.url, { run: "." });
  await frame.waitForSelector(".teach");
  const text = await frame.locator(".teach").innerText();
  expect(text).toContain("saw little of the first epoch");
  expect(text).toContain("tf.profiler.experimental.Profile");
});

it("a gap in our own capture is not blamed on Keras", async () => {
  const ready = await trueAnswer("report?run=.");
  ready.report.captured = true;
  ready.report.window.covered_ps = ready.report.window.duration_ps / 50;
  await answerInstead(watched.page, "report", ready);
  const frame = await openTab(watched.page, stage.board.url, { run: "." });
  const text = await frame.locator(".teach").innerText();
  expect(text).toContain("The capture profiled only parts of the epoch");
  expect(text).toContain("budget=0.5");
  expect(text).not.toContain("profile_batch");
});

it("a file that could not be read is named beside the verdict", async () => {
  const ready = await trueAnswer("report?run=.");
  const text = "The trace is cut off: the first 3 of 9 MB could be read.";
  ready.report.notes = [{ level: "error", text, where: "host.xplane.pb" }];
  await answerInstead(watched.page, "report", ready);
  const frame = await openTab(watched.page, stage.board.url, { run: "." });
  await frame.waitForSelector("#verdict + .notes");
  expect(await frame.locator("#verdict + .notes").innerText()).toContain(text);
});

it("a fault in the page itself is shown, and does not leave it empty", async () => {
  const ready = await trueAnswer("report?run=.");
  ready.report.findings = null; // no back end of ours would send this
  await answerInstead(watched.page, "report", ready);
  const frame = await openTab(watched.page, stage.board.url, { run: "." });
  await frame.waitForSelector("[role=alert]");
  expect(await frame.locator("[role=alert]").innerText()).toContain("bug in Stall");
  watched.complaints.length = 0; // the fault is in the console as well
});

it("new logs appear when TensorBoard reloads", async () => {
  const growing = mkdtempSync(join(tmpdir(), "stall-growing-"));
  const add = (run: string) => cpSync(join(SAMPLES, run), join(growing, run), { recursive: true });
  add("healthy");
  const other = await startTensorBoard("--logdir", growing);
  try {
    const frame = await openTab(watched.page, other.url);
    await frame.waitForSelector("#verdict h1");
    add("compile_tracing");
    await watched.page.locator("app-header-reload button").click();
    await frame.getByRole("button", { name: "All 2 runs" }).waitFor();
    await watched.page.goto("about:blank");
  } finally {
    await other.stop();
  }
});

it("a TensorBoard that stops is said to have stopped", async () => {
  await watched.page.route(/plugin\/stall\/runs/, (route) => route.abort());
  const frame = await openTab(watched.page, stage.board.url);
  await frame.waitForSelector("[role=alert]");
  expect(await frame.locator("[role=alert]").innerText()).toContain("is not responding");
  watched.complaints.length = 0; // the browser itself reports the failed request
});

it("works below a path prefix", async () => {
  const options = ["--logdir", join(SAMPLES, "healthy"), "--path_prefix", "/some/prefix"];
  const other = await startTensorBoard(...options);
  try {
    const frame = await openTab(watched.page, other.url);
    await frame.waitForSelector("#verdict h1");
    await frame.waitForSelector(".lane-title");
    await watched.page.goto("about:blank"); // TensorBoard's page would miss its server
  } finally {
    await other.stop();
  }
});
