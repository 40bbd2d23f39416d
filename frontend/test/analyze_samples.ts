/** Before the tests: the sample logs and a job that hangs, analyzed as any user would. */

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FOLDER = `${ROOT}build/page_data/`;
export const DATA = `${FOLDER}data.json`;

export default function analyzeSamples(): void {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  cpSync(`${ROOT}sample_logs`, `${FOLDER}logs`, { recursive: true });
  run("python", "-m", "tests.stuck_job", `${FOLDER}logs/stuck_job`);
  run("stall-analyze", `${FOLDER}logs`, "--html", `${FOLDER}report.html`);
  const page = readFileSync(`${FOLDER}report.html`, "utf8");
  writeFileSync(DATA, /<script [^>]*id="stall-data">(.*?)<\/script>/s.exec(page)![1]!);
}

function run(program: string, ...options: string[]): void {
  const { status, stderr } = spawnSync(`${ROOT}.venv/bin/${program}`, options, {
    cwd: ROOT,
    env: { ...process.env, STALL_CACHE_DIR: `${FOLDER}cache` },
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${program} failed: ${stderr} (first: make demo)`);
}
