/**
 * Builds ../tb_stall_plugin/static, or the folder named on the command line. The same sources give the same bytes: no hashes, no dates, no
 * paths; CI builds again and compares. esbuild alone, because one bundle needs no more.
 */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { bundle, here } from "./bundle.mjs";

const target = process.argv[2] ?? here("../tb_stall_plugin/static");

await mkdir(target, { recursive: true });
const { metafile } = await bundle({ outfile: `${target}/index.js` });

/** What of other people is in the bundle: by the files that esbuild has taken, not by a list of ours. */
const inside = Object.keys(metafile.inputs).flatMap(
  (path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1] ?? [],
);
const packages = await Promise.all(
  [...new Set(inside)].sort().map(async (name) => ({
    ...JSON.parse(await readFile(here(`node_modules/${name}/package.json`), "utf8")),
    text: await readFile(here(`node_modules/${name}/LICENSE`), "utf8"),
  })),
);
const licenses = packages.map(
  ({ name, version, license, text }) => `${name} ${version} (${license})\n\n${text}`,
);
await writeFile(`${target}/THIRD_PARTY.txt`, licenses.join("\n\n"));
const components = packages.map(({ name, version, license }) => ({
  type: "library",
  name,
  version,
  purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
  licenses: [{ license: { id: license } }],
}));
const sbom = { bomFormat: "CycloneDX", specVersion: "1.5", version: 1, components };
await writeFile(`${target}/sbom.cdx.json`, `${JSON.stringify(sbom, null, 2)}\n`);
