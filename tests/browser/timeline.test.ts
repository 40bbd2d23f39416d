/** Working in the timeline: choosing events, walking along them, summing up stretches. */

import type { Frame, Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { openTab, violations } from "./browser";
import { freshPages, setUpStage } from "./stage";
import { SAMPLES } from "./tensorboard";

const stage = setUpStage(() => ["--logdir", SAMPLES]);
const watched = freshPages(stage);

async function openRun(run: string): Promise<Frame> {
  const frame = await openTab(watched.page, stage.board.url, { run });
  await frame.waitForSelector(".lane-title");
  return frame;
}

const panel = (frame: Frame) => frame.locator(".event-panel");

/** In the middle of the lane's first row, at a share of its width. */
async function placeIn(frame: Frame, lane: string, share: number) {
  const surface = frame.locator(".timeline-surface");
  await frame.locator("#timeline").evaluate((element) => element.scrollIntoView());
  const title = frame.locator(".lane-title", { hasText: lane }).first();
  await title.scrollIntoViewIfNeeded();
  const [area, box] = [(await surface.boundingBox())!, (await title.boundingBox())!];
  return { x: area.x + area.width * share, y: box.y + box.height / 2 };
}

async function click(frame: Frame, lane: string, share: number): Promise<void> {
  const { x, y } = await placeIn(frame, lane, share);
  await watched.page.mouse.click(x, y);
}

async function drag(page: Page, frame: Frame, from: number, to: number): Promise<void> {
  const begin = await placeIn(frame, "where the time went", from);
  const end = await placeIn(frame, "where the time went", to);
  await page.mouse.move(begin.x, begin.y);
  await page.mouse.down();
  await page.mouse.move(end.x, end.y, { steps: 4 });
  await page.mouse.up();
}

describe("an event", () => {
  it("is chosen by a click, and tells what, where, when and what training waited for", async () => {
    const frame = await openRun("input_py_function");
    await click(frame, "Map (MapDataset:2)", 0.5);
    const text = () => panel(frame).innerText();
    await expect.poll(text).toContain("Map (MapDataset:2)");
    expect(await text()).toMatch(/Where\s+Map/);
    expect(await text()).toMatch(/Starts\s+[\d.]+ m?s \([\d.]+ m?s in the trace viewer\)/);
    expect(await text()).toMatch(/Takes\s+[\d.]+ ms/);
    expect(await text()).toMatch(/input: wait/);
    await frame.getByRole("button", { name: "Close (Esc)" }).click();
    expect(await panel(frame).count()).toBe(0);
  });

  it("tells its arguments", async () => {
    const frame = await openRun("input_py_function");
    await click(frame, "training thread", 0.5);
    await expect.poll(() => panel(frame).innerText()).toContain("tf_function_call");
  });

  it("leads to those beside, below and above it by arrow keys, and Enter zooms to it", async () => {
    const frame = await openRun("input_py_function");
    await click(frame, "steps", 0.5);
    const name = () => panel(frame).locator("h3").innerText();
    await expect.poll(name).toMatch(/^step \d+$/);
    const first = Number((await name()).split(" ")[1]);
    await watched.page.keyboard.press("ArrowRight");
    await expect.poll(name).toBe(`step ${first + 1}`);
    await watched.page.keyboard.press("ArrowLeft");
    await expect.poll(name).toBe(`step ${first}`);
    await watched.page.keyboard.press("ArrowDown");
    await expect.poll(name).toBe("multi_step_on_iterator");
    await watched.page.keyboard.press("ArrowUp");
    await expect.poll(name).toBe(`step ${first}`);
    await watched.page.keyboard.press("Enter");
    await expect.poll(() => frame.locator(".timeline-range").innerText()).toMatch(/ from /);
    await watched.page.keyboard.press("Escape");
    await expect.poll(() => panel(frame).count()).toBe(0);
  });

  it("is found by its name on any thread, and then chosen", async () => {
    const frame = await openRun("input_py_function");
    await frame.getByLabel("Find an event by name").fill("matmul");
    await frame.waitForSelector(".search-hits button");
    expect(await frame.locator(".search-hits p").innerText()).not.toContain("No event");
    await frame.locator(".search-hits button").first().click();
    await expect.poll(() => panel(frame).locator("h3").innerText()).toContain("MatMul");
  });
});

describe("a stretch", () => {
  it("that is dragged open is summed up by cause and by op, and can be zoomed to", async () => {
    const frame = await openRun("input_py_function");
    await drag(watched.page, frame, 0.4, 0.6);
    const text = () => panel(frame).innerText();
    await expect.poll(text).toContain("By cause");
    expect(await text()).toMatch(/input: wait/);
    expect(await panel(frame).locator(".op-table tbody tr").count()).toBeGreaterThan(3);
    expect(await frame.locator(".timeline-range").innerText()).toMatch(/^Whole window/);
    await frame.getByRole("button", { name: "Zoom to range" }).click();
    await expect.poll(() => frame.locator(".timeline-range").innerText()).toMatch(/ from /);
  });

  it("has a flame view, in which one can go deeper", async () => {
    const frame = await openRun("input_py_function");
    await drag(watched.page, frame, 0.3, 0.9);
    await frame.getByRole("button", { name: "Flame view" }).click();
    const flames = frame.locator(".event-panel .flame");
    await expect.poll(() => flames.count()).toBeGreaterThan(5);
    const all = await flames.count();
    await flames.filter({ hasText: "training thread" }).click();
    await expect.poll(() => flames.count()).not.toBe(all);
  });
});

describe("the lanes", () => {
  it("hold every thread, and open to their whole depth", async () => {
    const frame = await openRun("input_py_function");
    const titles = await frame.locator(".lane-title").allInnerTexts();
    expect(titles.filter((title) => title.includes("tf_data_private_threadpool")).length).toBe(2);
    const title = frame.getByRole("button", { name: /tf_data_iterator_resource/ });
    expect(await title.getAttribute("aria-expanded")).toBe("false");
    const height = async () => (await frame.locator(".timeline-surface").boundingBox())!.height;
    const before = await height();
    await title.click();
    await expect.poll(height).toBeGreaterThan(before);
    expect(await title.getAttribute("aria-expanded")).toBe("true");
  });

  it("show each curve that does not move in a line", async () => {
    const frame = await openRun("input_py_function");
    const flat = frame.locator(".lane-title", { hasText: "learning rate" });
    expect(await flat.locator(".flat").innerText()).toBe("0.01");
  });

  it("can be counted by the trace viewer's clock", async () => {
    const frame = await openRun("input_py_function");
    await frame.getByRole("button", { name: "Zoom in" }).click();
    const range = () => frame.locator(".timeline-range").innerText();
    await expect.poll(range).toMatch(/ from /);
    const before = await range();
    await frame.getByLabel("trace viewer's clock").check();
    await expect.poll(range).not.toBe(before);
  });
});

describe("on a large screen", () => {
  it("the timeline begins above the fold", async () => {
    await watched.page.setViewportSize({ width: 1920, height: 1080 });
    const frame = await openRun("input_py_function");
    const top = await frame.evaluate(
      () => document.querySelector("#timeline")!.getBoundingClientRect().top / innerHeight,
    );
    expect(top).toBeLessThan(0.5);
  });
});

it.each(["light", "dark"])("details and sums can be read by everybody, %s", async (look) => {
  const frame = await openRun("input_py_function");
  if (look === "dark") await watched.page.evaluate(() => document.body.classList.add("dark-mode"));
  await click(frame, "training thread", 0.5);
  await expect.poll(() => panel(frame).innerText()).toContain("Takes");
  expect(await violations(frame)).toEqual([]);
  await drag(watched.page, frame, 0.4, 0.6);
  await expect.poll(() => panel(frame).innerText()).toContain("By cause");
  expect(await violations(frame)).toEqual([]);
  await frame.getByRole("button", { name: "Flame view" }).click();
  expect(await violations(frame)).toEqual([]);
});
