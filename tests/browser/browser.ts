/** The system's Chromium, and a page that complains about what must never happen. */

import { existsSync } from "node:fs";
import axe from "axe-core";
import {
  type Browser,
  type BrowserContextOptions,
  type Frame,
  type Page,
  chromium,
} from "playwright-core";

const CANDIDATES = [
  process.env["CHROMIUM"],
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

export function launch(): Promise<Browser> {
  const executablePath = CANDIDATES.find((path) => path && existsSync(path));
  if (!executablePath) {
    throw new Error("No Chromium found; install it, or name one in the variable CHROMIUM.");
  }
  return chromium.launch({
    executablePath,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

export interface Watched {
  page: Page;
  /** What went wrong without anybody asking: console errors, crashes, requests to elsewhere. */
  complaints: string[];
  close: () => Promise<void>;
}

const PATIENCE_MS = 300_000; // of a busy machine
export const WIDE = { width: 1440, height: 900 };

export async function watchedPage(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<Watched> {
  const context = await browser.newContext({ viewport: WIDE, ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(`exception: ${error.message}`));
  page.on("console", (message) => {
    const { url } = message.location();
    // TensorBoard's own fonts do not know about its path prefix.
    if (message.type() !== "error" || url.includes("/font-roboto/")) return;
    complaints.push(`console: ${message.text()} ${url}`);
  });
  await context.route("**/*", (route) => {
    const { protocol, hostname } = new URL(route.request().url());
    const isOurs = hostname === "127.0.0.1" || hostname === "localhost" || !/^http/.test(protocol);
    if (isOurs) return route.fallback();
    complaints.push(`request left the machine: ${route.request().url()}`);
    return route.abort();
  });
  // Answers that a test makes up may still be under way.
  const close = async () => {
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await context.close();
  };
  return { page, complaints, close };
}

/** Our page inside TensorBoard's, once it shows something. */
export async function stallFrame(page: Page): Promise<Frame> {
  const element = await page.waitForSelector('iframe[src*="name=stall"]', {
    state: "attached",
  });
  const frame = (await element.contentFrame())!;
  await frame.waitForSelector("#stall > *");
  return frame;
}

/** Opens the tab at a place: `{run: "healthy", finding: "ST001"}`. */
export async function openTab(
  page: Page,
  url: string,
  place: Record<string, string> = {},
): Promise<Frame> {
  const pairs = Object.entries(place).map(
    ([name, value]) => `&p.stall.${name}=${encodeURIComponent(value)}`,
  );
  await page.goto(`${url}#stall${pairs.join("")}`);
  return stallFrame(page);
}

/** What axe-core has to complain about. */
export async function violations(frame: Frame): Promise<string[]> {
  await frame.evaluate(axe.source);
  const { violations: found } = await frame.evaluate(() =>
    // The page is one tab of TensorBoard: landmarks and headings of the whole are not ours.
    (window as any).axe.run("#stall", { resultTypes: ["violations"] }),
  );
  return found.flatMap(({ id, nodes }: axe.Result) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 120)} ${failureSummary}`),
  );
}
