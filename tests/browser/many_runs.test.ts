/** Two thousand runs: the list is quick, and only what is looked at is analyzed. */

import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Frame } from "playwright-core";
import { afterAll, describe, expect, it } from "vitest";
import { openTab } from "./browser";
import { freshPages, setUpStage } from "./stage";
import { SAMPLES } from "./tensorboard";

const RUNS = 2000;
const PAGE_ROWS = 50;
const PATIENCE = { timeout: 300_000 };
const QUICK_MS = 100_000; // of a busy machine; to analyze them all takes several times as long

const logdir = mkdtempSync(join(tmpdir(), "stall-many-"));
const stage = setUpStage(() => {
  const events = join(SAMPLES, "event_files_only", "train");
  const [file] = readdirSync(events) as [string];
  for (let i = 0; i < RUNS; i++) {
    cpSync(join(events, file), join(logdir, `lr_${i % 10}`, `trial_${i}`, file));
  }
  // TensorBoard reads them once: ours is the tab that is measured.
  return ["--logdir", logdir, "--reload_interval", "0"];
});
const watched = freshPages(stage);
afterAll(() => rmSync(logdir, { recursive: true, force: true }));

const open = () => openTab(watched.page, stage.board.url);
const rows = (frame: Frame) => frame.locator(".runs-table tbody tr").count();
const analyzed = (frame: Frame) => frame.locator(".runs-toolbar [role=status]").innerText();

describe("two thousand runs", () => {
  it("are listed quickly, a page at a time", async () => {
    const asked = watched.page.waitForRequest(/plugin\/stall\/runs/).then(() => performance.now());
    const frame = await open();
    await frame.waitForSelector(".runs-table tbody tr");
    const tookMs = performance.now() - (await asked);
    console.info(`${RUNS} runs: listed after ${(tookMs / 1000).toFixed(2)} s`);
    expect(tookMs).toBeLessThan(QUICK_MS);
    expect(await rows(frame)).toBe(PAGE_ROWS);
    expect(await frame.locator(".pager").first().innerText()).toContain("1–50 of 2,000");
  });

  it("are analyzed when they are seen, and only those", async () => {
    const frame = await open();
    await expect.poll(() => analyzed(frame), PATIENCE).toBe("50 of 2,000 runs analyzed");
    expect(await frame.locator(".runs-table .stacked-bar").count()).toBe(PAGE_ROWS);
    await frame.getByRole("button", { name: "Next page" }).first().click();
    await expect.poll(() => analyzed(frame), PATIENCE).toBe("100 of 2,000 runs analyzed");
  });

  it("are found by name", async () => {
    const frame = await open();
    await frame.getByLabel("Filter runs by text").fill("LR_3 trial_13");
    await expect.poll(() => rows(frame)).toBe(12); // 13, 133, and ten from 1303 to 1393
    await frame.getByLabel("Filter runs by text").fill("no such run");
    await expect.poll(() => rows(frame)).toBe(0);
    expect(await frame.locator("#runs").innerText()).toContain("No run matches.");
  });

  it("can be sorted without a wait", async () => {
    const frame = await open();
    await frame.waitForSelector(".runs-table tbody tr");
    const began = performance.now();
    await frame.getByRole("button", { name: "Run", exact: true }).click();
    await expect
      .poll(() => frame.locator(".runs-table tbody th button").first().innerText())
      .toBe("lr_9/trial_1999");
    const tookMs = performance.now() - began;
    console.info(`${RUNS} runs: sorted after ${tookMs.toFixed(0)} ms`);
    expect(tookMs).toBeLessThan(QUICK_MS);
  });

  it("can all be analyzed on request, while the page goes on", async () => {
    const frame = await open();
    await frame.getByRole("button", { name: "Analyze all" }).click();
    const count = async () => Number((await analyzed(frame)).split(" of ")[0]!.replace(",", ""));
    await expect.poll(count, PATIENCE).toBeGreaterThan(150);
    await frame.getByRole("button", { name: "lr_0/trial_0", exact: true }).click();
    await frame.waitForSelector("#verdict h1", { timeout: QUICK_MS });
  });
});
