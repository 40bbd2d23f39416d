import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** The tests in a real browser against a real TensorBoard. One after the other: they share both. */
export default defineConfig({
  root: here(".."),
  // The tests lie beside the Python ones; their libraries are ours.
  resolve: {
    alias: {
      "playwright-core": here("node_modules/playwright-core"),
      "axe-core": here("node_modules/axe-core"),
      vitest: here("node_modules/vitest"),
    },
  },
  test: {
    include: process.env["BENCHMARKS"] ? ["benchmarks/*.bench.ts"] : ["tests/browser/**/*.test.ts"],
    environment: "node",
    fileParallelism: false,
    // They only guard against waiting forever: a busy machine may take its time.
    testTimeout: 600_000,
    expect: { poll: { timeout: 300_000 } },
    hookTimeout: 600_000,
  },
});
