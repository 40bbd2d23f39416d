/** What the tests of a file share: TensorBoard and Chromium, and perhaps a fresh page for each. */

import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { type Watched, launch, watchedPage } from "./browser";
import { type TensorBoard, startTensorBoard } from "./tensorboard";

/** Filled before the first test. */
export interface Stage {
  board: TensorBoard;
  browser: Browser;
}

/** Both are started before the first test of the file, or of the `describe` around it. */
export function setUpStage(options: () => string[]): Stage {
  const stage = {} as Stage;
  beforeAll(async () => {
    [stage.board, stage.browser] = await Promise.all([startTensorBoard(...options()), launch()]);
  });
  afterAll(async () => {
    await stage.browser?.close();
    await stage.board?.stop();
  });
  return stage;
}

/** A new page for each test, after which there must be nothing to complain about. */
export function freshPages(stage: Stage): Watched {
  const watched = {} as Watched;
  beforeEach(async () => {
    Object.assign(watched, await watchedPage(stage.browser));
  });
  afterEach(async () => {
    await watched.close();
    expect(watched.complaints).toEqual([]);
  });
  return watched;
}
