/**
 * A server for work on the page: `npm run dev`, with a TensorBoard running beside it. It passes
 * everything on to TensorBoard except the page's own script, which esbuild makes anew for each
 * reload. Nothing is written into the package.
 *
 *   tensorboard --logdir sample_logs      in one terminal
 *   npm --prefix frontend run dev         in another; then open http://localhost:6007/#stall
 */

import { createServer, request } from "node:http";
import { bundle } from "./bundle.mjs";

const PORT = Number(process.env.PORT ?? 6007);
const tensorboard = new URL(process.env.TENSORBOARD ?? "http://localhost:6006");
const SCRIPT = "/data/plugin/stall/index.js";

const serveScript = async (response) => {
  try {
    const { outputFiles } = await bundle({ write: false, minify: false, sourcemap: "inline" });
    response.writeHead(200, { "Content-Type": "text/javascript", "Cache-Control": "no-store" });
    response.end(outputFiles[0].contents);
  } catch (failure) {
    response.writeHead(500, { "Content-Type": "text/plain" }).end(String(failure));
  }
};

const passOn = (asked, response) => {
  const { method, url, headers } = asked;
  const onward = request(new URL(url, tensorboard), { method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on("error", ({ message }) => {
    response.writeHead(502, { "Content-Type": "text/plain" });
    response.end(`There is no TensorBoard at ${tensorboard.href}: ${message}\n`);
  });
  asked.pipe(onward);
};

createServer((asked, response) =>
  asked.url.split("?")[0] === SCRIPT ? void serveScript(response) : passOn(asked, response),
).listen(PORT, "localhost", () => console.log(`http://localhost:${PORT}/#stall`));
