/** The page as one script, for the build and for the dev server. */

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";

export const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

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

export const bundle = (options) =>
  build({
    metafile: true,
    entryPoints: [here("src/main.tsx")],
    outfile: here("../build/static/index.js"),
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
    ...options,
  });
