/**
 * How long until the verdict is on the screen, against XProf's overview of the same trace in the
 * same TensorBoard: `STALL_LOGDIR=path/to/logdir npm run test:browser -- first_paint`.
 */

import { cpSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, describe, expect, it } from "vitest";
import { openTab, watchedPage } from "./browser";
import { setUpStage } from "./stage";

const GIVEN = process.env["STALL_LOGDIR"] ?? "";
const PATIENCE_MS = 300_000;

describe.skipIf(!GIVEN)("first paint", () => {
  const logdir = join(tmpdir(), `stall-paint-${process.pid}`);
  const stage = setUpStage(() => {
    // Both sides start without caches; XProf keeps its own beside the trace.
    cpSync(GIVEN, logdir, {
      recursive: true,
      filter: (path) => !/SSTABLE|\.json$|op_stats|cache/.test(path),
    });
    return ["--logdir", logdir];
  });
  afterAll(() => rmSync(logdir, { recursive: true, force: true }));

  const timed = async (action: (page: Page, url: string) => Promise<void>): Promise<number> => {
    const { page, close } = await watchedPage(stage.browser);
    await page.goto(stage.board.url); // TensorBoard's own page costs both the same
    const began = performance.now();
    await action(page, stage.board.url);
    const took = performance.now() - began;
    await close();
    return took;
  };

  it("of the verdict comes before XProf has its data", { timeout: PATIENCE_MS }, async () => {
    const times: Record<string, number> = {};
    for (const state of ["cold", "warm"]) {
      times[`Stall ${state}`] = await timed(showVerdict);
      times[`XProf ${state}`] = await timed(loadOverview);
    }
    console.info(
      Object.entries(times)
        .map(([what, ms]) => `${what} ${(ms / 1000).toFixed(2)} s`)
        .join(", "),
    );
    expect(times["Stall warm"]).toBeLessThan(times["XProf cold"]!);
  });
});

async function showVerdict(page: Page, url: string): Promise<void> {
  const frame = await openTab(page, `${url}?`);
  const first = frame.locator("#verdict h1, .runs-table .status-badge").first();
  await first.waitFor({ timeout: PATIENCE_MS });
}

/** Until its data are there: XProf's charts then load a library from the network, which we refuse. */
async function loadOverview(page: Page, url: string): Promise<void> {
  const answered = page.waitForResponse(/profile\/data\?.*tag=overview_page/, {
    timeout: PATIENCE_MS,
  });
  await page.goto(`${url}?tool=overview_page#profile`);
  await (await answered).finished();
}
