/** A real TensorBoard on a free port of this machine. */

import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

/** A copy of the sample logs: the Profile plugin writes its caches beside the traces it shows. */
export const SAMPLES = join(mkdtempSync(join(tmpdir(), "stall-samples-")), "sample_logs");
cpSync(join(REPOSITORY, "sample_logs"), SAMPLES, { recursive: true, preserveTimestamps: true });
process.once("exit", () => rmSync(dirname(SAMPLES), { recursive: true, force: true }));
export const BIN = join(REPOSITORY, ".venv", "bin");

const START_MS = 300_000;

export interface TensorBoard {
  /** With the path prefix and a slash at the end. */
  url: string;
  /** All that it has written so far. */
  log: () => string;
  stop: () => Promise<void>;
}

export async function startTensorBoard(...options: string[]): Promise<TensorBoard> {
  const cache = mkdtempSync(join(tmpdir(), "stall-cache-"));
  const child = spawn(join(BIN, "tensorboard"), [...FLAGS, ...options], {
    cwd: REPOSITORY,
    env: { ...process.env, STALL_CACHE_DIR: cache, TF_CPP_MIN_LOG_LEVEL: "3" },
  });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (piece: Buffer) => (log += piece.toString()));
  }
  const stop = async () => {
    await ended(child);
    rmSync(cache, { recursive: true, force: true });
  };
  const deadline = Date.now() + START_MS;
  for (;;) {
    const url = /http:\/\/(?:127\.0\.0\.1|localhost):\d+\/\S*/.exec(log)?.[0];
    if (url) return { url: url.endsWith("/") ? url : `${url}/`, log: () => log, stop };
    if (child.exitCode !== null || Date.now() > deadline) {
      await stop();
      throw new Error(`TensorBoard did not start:\n${log}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const FLAGS = ["--host", "127.0.0.1", "--port", "0"];

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null) return resolve();
    child.once("exit", () => resolve());
    child.kill();
  });
}
