/** A job that hangs: the stack of the thread that waits, and who of the cluster is missing. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { openTab, violations } from "./browser";
import { freshPages, setUpStage } from "./stage";
import { BIN, REPOSITORY } from "./tensorboard";

const logdir = mkdtempSync(join(tmpdir(), "stall-stuck-"));
const stage = setUpStage(() => {
  const { status, stderr } = spawnSync(join(BIN, "python"), ["-m", "tests.stuck_job", logdir], {
    cwd: REPOSITORY,
  });
  expect(status, String(stderr)).toBe(0);
  return ["--logdir", logdir];
});
const watched = freshPages(stage);
afterAll(() => rmSync(logdir, { recursive: true, force: true }));

const open = () => openTab(watched.page, stage.board.url, { run: ".", finding: "ST510" });

it("the card of a hang shows where the thread stands, innermost first", async () => {
  const frame = await open();
  const card = frame.locator(".card.chosen");
  expect(await card.locator(".stack").innerText()).toBe(
    [
      "/usr/lib/python3.11/threading.py:320 Condition.wait",
      "/usr/lib/python3.11/queue.py:171 Queue.get",
      "/home/me/data.py:12 batches",
    ].join("\n"),
  );
});

it("the cluster lists its members, who ended first and who is missing", async () => {
  const frame = await open();
  const section = frame.locator("#cluster");
  expect(await section.locator("p").innerText()).toContain("node1-worker-1 ended first");
  const rows = await section.locator("tbody tr").allInnerTexts();
  expect(rows.map((row) => row.split(/\s*\t\s*/))).toEqual([
    ["node0-worker-0", "37", "2023-11-14 22:15:09", "–", "a capture"],
    ["node1-worker-1", "37", "2023-11-14 22:13:30", "–", "a capture, ended first"],
    ["worker 2", "–", "nothing"],
  ]);
  expect(await section.innerText()).toContain("3 members, according to TF_CONFIG");
});

it("every thread is shown on demand, the culprit first and open at its line", async () => {
  const frame = await open();
  const threads = frame.locator("#threads .thread");
  await threads.first().waitFor();
  expect(await threads.count()).toBe(2);
  expect(await threads.first().locator("summary").innerText()).toMatch(
    /holds up training.*is waiting in queue\.Queue\.get\(\)/,
  );
  expect(await threads.first().locator(".frame.here").innerText()).toContain("data.py:12 batches");
  expect(await threads.last().locator(".stack").isVisible()).toBe(false);
  await threads.last().locator("summary").click();
  expect(await threads.last().locator(".stack").isVisible()).toBe(true);
});

it.each(["light", "dark"])("both can be read by everybody, %s", async (look) => {
  const frame = await open();
  await frame.waitForSelector("#cluster");
  if (look === "dark") await watched.page.evaluate(() => document.body.classList.add("dark-mode"));
  expect(await violations(frame)).toEqual([]);
});
