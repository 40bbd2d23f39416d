/** Every view of the tab, on the sample logs, in a real TensorBoard. */

import { readdirSync } from "node:fs";
import type { Frame } from "playwright-core";
import { describe, expect, it } from "vitest";
import { openTab, stallFrame } from "./browser";
import { freshPages, setUpStage } from "./stage";
import { SAMPLES } from "./tensorboard";

const stage = setUpStage(() => ["--logdir", SAMPLES]);
const watched = freshPages(stage);

const open = (place: Record<string, string> = {}) => openTab(watched.page, stage.board.url, place);

/** The run's page, once its timeline is painted. */
async function openRun(run: string, place: Record<string, string> = {}): Promise<Frame> {
  const frame = await open({ run, ...place });
  await frame.waitForSelector(".lane-title");
  return frame;
}

const RUNS = readdirSync(SAMPLES).length;

const range = (frame: Frame) => frame.locator(".timeline-range").innerText();
const chosen = (frame: Frame, facet: string) =>
  frame.getByLabel(facet, { exact: true }).locator("option:checked").innerText();
const picker = (frame: Frame) => frame.getByRole("combobox", { name: "Run", exact: true });
const names = (frame: Frame) => frame.locator(".runs-table tbody th button").allInnerTexts();

describe("the list of runs", () => {
  it("has every run with its verdict and its bar, and leads to each", async () => {
    const frame = await open();
    await frame.waitForSelector(".runs-table .status-badge");
    await expect.poll(() => frame.locator(".runs-table .stacked-bar").count()).toBe(RUNS);
    await frame.getByRole("button", { name: "input_py_function", exact: true }).click();
    expect(await frame.locator("h1").innerText()).toContain("input");
  });

  it("is sorted by a click on a column", async () => {
    const frame = await open();
    await expect.poll(() => frame.locator(".runs-table .stacked-bar").count()).toBe(RUNS);
    await frame.getByRole("button", { name: "Run", exact: true }).click();
    expect(await names(frame)).toEqual([...(await names(frame))].sort());
    await frame.getByRole("button", { name: "Run", exact: true }).click();
    expect((await names(frame))[0]).toBe("numerics_nan");
  });

  it("is cut down by verdict, bucket and words, and the link keeps that", async () => {
    const frame = await open();
    await expect.poll(() => frame.locator(".runs-table .stacked-bar").count()).toBe(RUNS);
    await frame.getByLabel("Verdict", { exact: true }).selectOption("slow_always");
    await frame.getByLabel("Mostly").selectOption("input");
    expect(await names(frame)).toEqual(["input_py_function"]);
    await watched.page.reload();
    const again = await stallFrame(watched.page);
    await expect.poll(() => names(again)).toEqual(["input_py_function"]);
    await again.getByRole("button", { name: "Show all" }).click();
    await again.getByLabel("Filter runs by text").fill("memory allocator");
    expect(await names(again)).toEqual(["memory_allocator_wait"]);
    expect(await again.locator(".run-filters").innerText()).toContain(`1 of ${RUNS} runs`);
  });

  it.each([390, 768, 1000])("hides no figure of a run at %i pixels", async (width) => {
    const frame = await open();
    await expect.poll(() => frame.locator(".runs-table .stacked-bar").count()).toBe(RUNS);
    await watched.page.setViewportSize({ width, height: 900 });
    const beyond = await frame.locator(".runs-table tbody tr > *").evaluateAll(
      (cells) =>
        cells.filter((cell) => {
          const { left, right } = cell.getBoundingClientRect();
          return left < 0 || right > window.innerWidth || right === left;
        }).length,
    );
    expect(beyond).toBe(0);
    if (width < 960) await frame.getByLabel("Sort by").selectOption("duration");
    else await frame.getByRole("button", { name: "First epoch" }).click();
    expect((await names(frame))[0]).toBe("healthy");
  });
});

describe("the choice of a run", () => {
  it("searches by name, verdict and finding, with the keyboard", async () => {
    const frame = await openRun("healthy");
    await picker(frame).click();
    await expect.poll(() => frame.getByRole("option").count()).toBe(RUNS);
    await picker(frame).fill("slow once tracing");
    expect(await frame.getByRole("option").count()).toBe(1);
    await picker(frame).press("Enter");
    await expect.poll(() => frame.locator("#verdict h1").innerText()).toContain("compile");
    expect(await picker(frame).inputValue()).toContain("compile_tracing");
  });

  it("leaves everything as it was when it is given up", async () => {
    const frame = await openRun("healthy");
    await picker(frame).click();
    await picker(frame).fill("no such run");
    expect(await frame.getByRole("listbox").innerText()).toContain("No run matches.");
    await picker(frame).press("Escape");
    expect(await picker(frame).inputValue()).toContain("healthy");
    expect(await frame.getByRole("listbox").isVisible()).toBe(false);
  });
});

describe("the fleet", () => {
  it("sums up all runs, and leads to those with a finding and back", async () => {
    const frame = await open();
    await expect.poll(() => frame.locator(".runs-table .stacked-bar").count()).toBe(RUNS);
    await frame.getByRole("button", { name: "Fleet", exact: true }).click();
    expect(await frame.locator("#fleet h2").innerText()).toContain(`${RUNS} runs: their`);
    const counts = await frame.locator("#fleet-verdicts tbody td:nth-child(2)").allInnerTexts();
    expect(counts.map(Number).reduce((a, b) => a + b)).toBe(RUNS);
    const row = frame.locator("#fleet-findings tbody tr", { hasText: "python function in map" });
    const runs = Number(await row.locator("td").first().innerText());
    await row.getByRole("button").first().click();
    expect(await chosen(frame, "Finding")).toContain("python function in map");
    expect(await frame.locator(".runs-table tbody tr").count()).toBe(runs);
    await frame.getByRole("button", { name: "Show all" }).click();
    expect(await frame.locator(".runs-table tbody tr").count()).toBe(RUNS);
  });

  it("leads to its costliest run", async () => {
    const frame = await open({ view: "fleet" });
    const run = frame.locator("#fleet-runs tbody th button").first();
    const name = await run.innerText();
    await run.click();
    await frame.waitForSelector("#verdict h1");
    expect(await picker(frame).inputValue()).toContain(name);
  });

  it("shows a trend where there are several days, and lists the runs of one", async () => {
    await watched.page.route(/plugin\/stall\/runs/, async (route) => {
      const answer = await (await route.fetch()).json();
      const [day] = answer.fleet.days;
      const before = { ...day, day: "2000-01-01" };
      return route.fulfill({
        json: { ...answer, fleet: { ...answer.fleet, days: [before, day] } },
      });
    });
    const frame = await open({ view: "fleet" });
    await expect.poll(() => frame.locator(".days li").count()).toBe(2);
    await frame.locator(".days button").last().click();
    expect(await frame.locator(".runs-table tbody tr").count()).toBeGreaterThan(0);
    expect(await chosen(frame, "Day")).toMatch(/\d{4}-\d{2}-\d{2}/);
  });
});

describe("a run", () => {
  it("shows its verdict first", async () => {
    const frame = await openRun("input_py_function");
    expect(await frame.locator("#verdict h1").innerText()).toMatch(/^Slow in every epoch/);
    expect(await frame.locator("#verdict .status-badge").innerText()).toContain(
      "Slow in every epoch",
    );
    expect(await frame.locator(".outlook").innerText()).toMatch(/With .* change/);
  });

  it("divides its time into buckets and causes", async () => {
    const frame = await openRun("input_py_function");
    expect(await frame.locator(".bucket-row").first().innerText()).toMatch(/input[\s\S]*75%/);
    expect(await frame.locator(".cause-row").first().innerText()).toContain("wait");
    expect(await frame.locator(".stacked-bar.large .segment").count()).toBeGreaterThan(3);
  });

  it("has lanes for causes, phases, steps, the training thread and the input pipeline", async () => {
    const frame = await openRun("input_py_function");
    const headings = await frame.locator(".lane-heading").allInnerTexts();
    expect(headings).toEqual(expect.arrayContaining(["Training", "Input pipeline"]));
  });

  it("advises a change with code that can be copied", async () => {
    await watched.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const frame = await openRun("input_py_function");
    const card = frame.locator(".card").first();
    expect(await card.innerText()).toContain("ST001");
    await card.getByRole("button", { name: /^Copy/ }).click();
    await expect.poll(() => card.locator(".copy").innerText()).toBe("Copied");
  });

  it("unfolds the manual page of a finding", async () => {
    const frame = await openRun("input_py_function");
    await frame.locator(".manual summary").first().click();
    await frame.waitForSelector(".manual h4");
    expect(await frame.locator(".manual h4").allInnerTexts()).toContain("Blind spots");
    expect(await frame.locator(".manual p > code").first().innerText()).toBe("tf.py_function");
    expect(await frame.locator(".manual").first().innerText()).not.toContain("`");
  });
});

describe("from the verdict to the events", () => {
  it("a click on evidence moves the timeline there and marks the finding", async () => {
    const frame = await openRun("input_py_function");
    expect(await range(frame)).toMatch(/^Whole window/);
    await frame.locator(".evidence .chip button").first().click();
    await expect.poll(() => range(frame)).toMatch(/ from /);
    expect(await frame.locator(".focus-title").innerText()).toContain("ST001");
    await expect.poll(() => frame.locator(".flag.chosen").count()).toBeGreaterThan(0);
  });

  it("a click on a bucket shows its longest stretch, and the arrows the next ones", async () => {
    const frame = await openRun("input_py_function");
    await frame.locator(".bucket-row button").first().click();
    await frame.waitForSelector(".focus-walk");
    expect(await frame.locator(".focus-walk").innerText()).toMatch(/input.*\s*[\s\S]*1 of \d+/);
    await frame.getByRole("button", { name: /Next stretch/ }).click();
    expect(await frame.locator(".focus-walk").innerText()).toContain("2 of");
  });

  it("a click on a step shows the step", async () => {
    const frame = await openRun("input_py_function");
    await frame.locator(".step-surface").click({ position: { x: 100, y: 100 } });
    expect(await frame.locator(".focus-title").innerText()).toMatch(/^step \d+/);
  });

  it("a step can be chosen by keys", async () => {
    const frame = await openRun("input_py_function");
    const steps = frame.getByRole("slider");
    await steps.press("Home");
    await steps.press("ArrowRight");
    await steps.press("ArrowRight");
    expect(await steps.getAttribute("aria-valuetext")).toMatch(/^step 2: /);
    await steps.press("Enter");
    await expect.poll(() => frame.locator(".focus-title").innerText()).toBe("step 2");
    await expect.poll(() => range(frame)).toMatch(/ from /);
  });

  it("a search leads to an event", async () => {
    const frame = await openRun("input_py_function");
    await frame.getByLabel("Find an event by name").fill("iterator");
    await frame.locator(".search-hits button").first().click();
    await expect.poll(() => range(frame)).toMatch(/ from /);
    expect((await frame.locator(".focus-title").innerText()).toLowerCase()).toContain("iterator");
  });
});

describe("the timeline", () => {
  it("is zoomed and moved by wheel and by keys, and fits again", async () => {
    const frame = await openRun("compile_tracing");
    const surface = frame.locator(".timeline-surface");
    const lengths: string[] = [await range(frame)];
    const expectChange = async () => {
      await expect.poll(() => range(frame)).not.toBe(lengths.at(-1));
      lengths.push(await range(frame));
    };
    await surface.scrollIntoViewIfNeeded();
    await surface.focus();
    await surface.hover({ position: { x: 300, y: 60 } });
    await watched.page.mouse.wheel(0, -400);
    await expectChange();
    for (const key of ["s", "w", "d", "a", "-", "ArrowRight"]) {
      await surface.press(key);
      await expectChange();
    }
    await surface.press("0");
    await expect.poll(() => range(frame)).toMatch(/^Whole window/);
  });

  it("is moved along its overview", async () => {
    const frame = await openRun("compile_tracing");
    await frame.getByRole("button", { name: "Zoom in" }).click();
    await expect.poll(() => range(frame)).toMatch(/ from /);
    const before = await range(frame);
    await frame.locator(".minimap").click({ position: { x: 900, y: 6 } });
    await expect.poll(() => range(frame)).not.toBe(before);
  });

  it("leaves the wheel to the page until it is clicked, and says so", async () => {
    const frame = await openRun("compile_tracing");
    const surface = frame.locator(".timeline-surface");
    await surface.scrollIntoViewIfNeeded();
    await surface.hover({ position: { x: 300, y: 60 } });
    await watched.page.mouse.wheel(0, -10);
    await expect.poll(() => frame.locator(".timeline-help").innerText()).toContain("hold Ctrl");
    expect(await range(frame)).toMatch(/^Whole window/);
  });

  it("asks for more detail when it is zoomed", async () => {
    const frame = await openRun("compile_tracing");
    const asked = watched.page.waitForRequest((request) =>
      /timeline\?.*start_ps=[1-9]/.test(request.url()),
    );
    await frame.getByRole("button", { name: "Zoom in" }).click();
    await frame.getByRole("button", { name: "Zoom in" }).click();
    await frame.getByRole("button", { name: "Zoom in" }).click();
    await asked;
  });

  it("is still there when one comes back from another tab", async () => {
    const frame = await openRun("compile_tracing");
    const asked: string[] = [];
    watched.page.on("request", (request) => asked.push(request.url()));
    await watched.page.getByRole("tab", { name: /^\s*scalars\s*$/i }).click();
    await watched.page.waitForTimeout(500);
    await watched.page.getByRole("tab", { name: /^\s*stall\s*$/i }).click();
    await frame.waitForSelector(".lane-title");
    expect(asked.filter((url) => /stall\/timeline/.test(url))).toEqual([]);
  });

  it("tells what lies under the pointer", async () => {
    const frame = await openRun("compile_tracing");
    const surface = frame.locator(".timeline-surface");
    await surface.scrollIntoViewIfNeeded();
    const lane = (await frame.getByText("where the time went", { exact: true }).boundingBox())!;
    const top = (await surface.boundingBox())!.y;
    await surface.hover({ position: { x: 300, y: lane.y - top + lane.height / 2 } });
    const shown = await frame.locator(".tooltip").innerText();
    expect(shown).toMatch(/compile: tracing[\s\S]*, starting at /);
  });
});

describe("deep links", () => {
  it("survive a reload: run, finding and the part of the timeline", async () => {
    const frame = await openRun("input_py_function");
    await frame.locator(".evidence .chip button").first().click();
    await expect
      .poll(() => watched.page.url())
      .toMatch(/p\.stall\.finding=ST001.*p\.stall\.from=\d+/);
    const shown = await range(frame);
    await watched.page.reload();
    const again = await stallFrame(watched.page);
    await again.waitForSelector(".lane-title");
    expect(await again.locator(".focus-title").innerText()).toContain("ST001");
    expect(await range(again)).toBe(shown);
  });

  it("to a run that is not there say so", async () => {
    const frame = await open({ run: "no such run" });
    await frame.waitForSelector("[role=alert]");
    expect(await frame.locator("[role=alert]").innerText()).toContain("no such run");
    watched.complaints.length = 0; // the browser itself reports the 404
  });
});

describe("several hosts", () => {
  const cells = (frame: Frame, host: string) =>
    frame.locator(".heat-map tbody tr", { hasText: host }).locator("td").allInnerTexts();

  it("are shown as a heat map in which the late one stands out", async () => {
    const frame = await openRun("communication_straggler");
    const buckets = await frame.locator(".heat-map thead th").allInnerTexts();
    const share = async (host: string, bucket: string) =>
      parseFloat((await cells(frame, host))[buckets.indexOf(bucket) - 1]!);
    expect(await share("host-worker-0", "communication")).toBeGreaterThan(40);
    expect(await share("host-worker-1", "host")).toBeGreaterThan(40);
    expect(buckets.at(-1)).toBe("the others waited");
    expect((await cells(frame, "host-worker-1")).at(-1)).toMatch(/^1\.\d+ s$/);
    expect(await frame.locator(".card").first().innerText()).toContain("host-worker-1 is late");
  });

  it("have a timeline each, to which a link can lead", async () => {
    const frame = await openRun("communication_straggler");
    expect(await frame.locator("#timeline h2").innerText()).toBe("Timeline of host-worker-1");
    const asked = watched.page.waitForResponse(/timeline\?.*host=host-worker-0/);
    await frame.getByRole("button", { name: "host-worker-0", exact: true }).click();
    expect((await (await asked).json()).host).toBe("host-worker-0");
    await expect.poll(() => watched.page.url()).toContain("p.stall.host=host-worker-0");
    await watched.page.reload();
    const again = await stallFrame(watched.page);
    await again.waitForSelector(".heat-map tr.chosen");
    expect(await again.locator(".heat-map tr.chosen").innerText()).toContain("host-worker-0");
  });
});

describe("paper", () => {
  it("shows what the screen shows, without what only a screen can use", async () => {
    const frame = await openRun("input_py_function");
    await watched.page.emulateMedia({ media: "print" });
    expect(await frame.locator(".paper-title").innerText()).toBe("input_py_function");
    for (const shown of ["#verdict", ".bucket-table", ".card", ".timeline-surface canvas"]) {
      expect(await frame.locator(shown).first().isVisible(), shown).toBe(true);
    }
    for (const hidden of [".top-bar", ".timeline-toolbar", ".copy", ".trace-link"]) {
      expect(await frame.locator(hidden).first().isVisible(), hidden).toBe(false);
    }
  });

  it("is light, whatever the screen is", async () => {
    const frame = await openRun("healthy");
    await watched.page.evaluate(() => document.body.classList.add("dark-mode"));
    const theme = () => frame.evaluate(() => document.documentElement.dataset["theme"]);
    await expect.poll(theme).toBe("dark");
    await frame.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
    expect(await theme()).toBe("light");
    await frame.evaluate(() => window.dispatchEvent(new Event("afterprint")));
    expect(await theme()).toBe("dark");
  });
});

describe("comparing", () => {
  it("sets two runs side by side", async () => {
    let frame = await openRun("input_py_function");
    await frame.getByRole("button", { name: "Compare …" }).click();
    await frame.getByRole("button", { name: "healthy", exact: true }).click();
    await frame.waitForSelector("#compare");
    expect(await frame.locator("#compare h2").innerText()).toMatch(
      /first epoch is .* (shorter|longer)/,
    );
    expect(await frame.locator(".difference-table tbody tr").count()).toBeGreaterThan(3);
    expect(await frame.locator("#compare-gone").innerText()).toContain("ST001");
    expect(watched.page.url()).toMatch(/view=compare.*with=healthy/);
    await watched.page.reload();
    frame = await stallFrame(watched.page);
    await frame.waitForSelector("#compare");
    await frame.getByRole("button", { name: "⇄ Swap" }).click();
    await expect.poll(() => frame.locator("#compare-new").innerText()).toContain("ST001");
  });
});

describe("a healthy run", () => {
  it("says what its computing consists of, and what could make it faster", async () => {
    const frame = await openRun("healthy");
    const text = await frame.locator("#computing").innerText();
    expect(text).toMatch(/Kinds of ops\s+MatMul/);
    expect(text).toMatch(/saves little|worth trying/);
  });
});

describe("a run that learns nothing", () => {
  it("shows its loss on the first screen, and where it was lost", async () => {
    const frame = await openRun("numerics_nan");
    const box = (await frame.locator("#learning svg").boundingBox())!;
    expect(box.y).toBeLessThan(700);
    expect(await frame.locator("#learning .axes text").count()).toBeGreaterThan(6);
    expect(await frame.locator("#learning").innerText()).toMatch(/NaN or infinite from step \d+/);
  });

  it("stands before those that are only slow, in the list", async () => {
    const frame = await open();
    await expect.poll(() => frame.locator(".runs-table .stacked-bar").count()).toBe(RUNS);
    const names = await frame.locator(".runs-table tbody th button").allInnerTexts();
    expect(names[0]).toBe("numerics_nan");
    expect(names.at(-1)).toBe("healthy");
  });
});

describe("half-empty logs", () => {
  it("without a profile teach how to capture one", async () => {
    const frame = await open({ run: "event_files_only" });
    await frame.waitForSelector(".teach");
    expect(await frame.locator(".teach").innerText()).toContain("tf.profiler.experimental.Profile");
  });
});

describe("dark mode", () => {
  it("follows TensorBoard", async () => {
    const frame = await openRun("healthy");
    const theme = () => frame.evaluate(() => document.documentElement.dataset["theme"]);
    expect(await theme()).toBe("light");
    await watched.page.evaluate(() => document.body.classList.add("dark-mode"));
    await expect.poll(theme).toBe("dark");
  });
});

it("TensorBoard's security validator has nothing to say", () => {
  expect(stage.board.log()).not.toMatch(/security|Content-Security-Policy|X-Content-Type/i);
});
