/**
 * Builds ../tb_stall_plugin/static, or the folder named on the command line. The same sources give the same bytes: no hashes, no dates, no
 * paths; CI builds again and compares. esbuild alone, because one bundle needs no more.
 */

import { copyFile, mkdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";

const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const target = process.argv[2] ?? here("../tb_stall_plugin/static");

/** A style sheet becomes a string in the bundle: the page is one file. */
const cssAsText = {
  name: "css-as-text",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, "utf8"), {
        loader: "css",
        minify: true,
      });
      return { contents: code, loader: "text" };
    }),
};

await mkdir(target, { recursive: true });
await build({
  entryPoints: [here("src/main.tsx")],
  outfile: `${target}/index.js`,
  absWorkingDir: here("."),
  bundle: true,
  format: "esm",
  platform: "browser",
  target: "es2022",
  charset: "utf8",
  minify: true,
  legalComments: "none",
  banner: {
    js: "/* Stall for TensorBoard; built from frontend/. Contains Preact: see THIRD_PARTY.txt. */",
  },
  plugins: [cssAsText],
});
await copyFile(here("node_modules/preact/LICENSE"), `${target}/THIRD_PARTY.txt`);
