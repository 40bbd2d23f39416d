/** `stall-analyze --html`: one file that opens from disk, with the network off. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Watched, launch, watchedPage } from "./browser";
import { BIN, SAMPLES } from "./tensorboard";

const file = join(mkdtempSync(join(tmpdir(), "stall-html-")), "report.html");
let browser: Browser;
let watched: Watched;

beforeAll(async () => {
  const { status, stderr } = spawnSync(join(BIN, "stall-analyze"), [SAMPLES, "--html", file]);
  expect(status, String(stderr)).toBe(0);
  browser = await launch();
  watched = await watchedPage(browser, { offline: true });
});
afterAll(async () => {
  await watched?.close();
  await browser?.close();
});

it("shows runs, a verdict, a timeline and a manual page without any network", async () => {
  const { page, complaints } = watched;
  await page.goto(pathToFileURL(file).href);
  await page.getByRole("button", { name: "compile_tracing", exact: true }).click();
  await page.waitForSelector("#verdict h1");
  await page.waitForSelector(".lane-title");
  await page.locator(".card .evidence .chip button").first().click();
  await expect.poll(() => page.locator(".timeline-range").innerText()).toMatch(/ from /);
  await page.locator(".manual summary").first().click();
  await page.waitForSelector(".manual h4");
  await page.getByLabel("Find an event by name").fill("tracing");
  await page.waitForSelector(".search-hits button");
  expect(complaints).toEqual([]);
});

it("says of what, when and with what it was written", async () => {
  const { page } = watched;
  await page.goto(pathToFileURL(file).href);
  expect(await page.locator(".file-about").innerText()).toMatch(
    /sample_logs, analyzed \d{4}-\d\d-\d\d \d\d:\d\d UTC with Stall \d/,
  );
});

it("tells of an event and of a stretch what it holds", async () => {
  const { page, complaints } = watched;
  await page.goto(`${pathToFileURL(file).href}#stall&p.stall.run=compile_tracing`);
  await page.reload();
  await page.waitForSelector(".lane-title");
  const surface = page.locator(".timeline-surface");
  await page.locator("#timeline").evaluate((element) => element.scrollIntoView());
  await surface.click({ position: { x: 200, y: 15 } });
  await expect.poll(() => page.locator(".event-panel").innerText()).toContain("compile: tracing");
  expect(complaints).toEqual([]);
});

it("sums up all of its runs", async () => {
  const { page, complaints } = watched;
  await page.goto(`${pathToFileURL(file).href}#stall&p.stall.view=fleet`);
  await page.reload();
  expect(await page.locator("#fleet h2").innerText()).toMatch(/^\d+ runs: their first epochs/);
  await page.locator("#fleet-findings tbody th button").first().click();
  await page.waitForSelector(".runs-table tbody tr");
  expect(complaints).toEqual([]);
});

it("has deep links of its own, and says when there is no more detail", async () => {
  const { page } = watched;
  await page.goto(
    `${pathToFileURL(file).href}#stall&p.stall.run=healthy&p.stall.from=100&p.stall.to=100000`,
  );
  await page.reload();
  await page.waitForSelector(".lane-title");
  expect(await page.locator(".timeline-help").innerText()).toContain("no more detail");
});

it("follows the system into the dark", async () => {
  const { page } = watched;
  await page.emulateMedia({ colorScheme: "dark" });
  const theme = () => page.evaluate(() => document.documentElement.dataset["theme"]);
  await expect.poll(theme).toBe("dark");
});

it("refers to nothing outside of itself", () => {
  const text = readFileSync(file, "utf8");
  expect(text).not.toMatch(/(?:src|href)="?https?:/);
});
