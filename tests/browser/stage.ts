/** What the tests of a file share: TensorBoard and Chromium, and perhaps a fresh page for each. */

import type { Browser, Page } from "playwright-core";
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

/** Answers in the back end's place; the last answer is given again and again. */
export async function answerInstead(
  page: Page,
  route: string,
  ...answers: unknown[]
): Promise<void> {
  let count = 0;
  await page.route(new RegExp(`/plugin/stall/${route}(\\?|$)`), (request) => {
    const json = answers[Math.min(count++, answers.length - 1)];
    return request.fulfill({ json });
  });
}

/** The back end's true answer, for a test to change. */
export async function trueAnswerOf(stage: Stage, route: string): Promise<any> {
  for (;;) {
    const response = await fetch(`${stage.board.url}data/plugin/stall/${route}`);
    const answer: any = await response.json();
    const states = [answer.state, ...(answer.runs ?? []).map((run: any) => run.state)];
    if (!states.some((state) => state === "waiting" || state === "running")) return answer;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}
