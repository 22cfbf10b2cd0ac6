// node build.mjs [FOLDER]: makes page.html, the page without its data, and worker.js, which runs the library in a live
// page, of src/, by default in ../share/viewer. The results depend on the sources and on package-lock.json alone; they
// are committed, so that the tool builds without node.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { bundled } from "./bundle.mjs";

const here = dirname(fileURLToPath(import.meta.url));
/** What a live page allows besides: the library as WebAssembly, in a worker that is made of an element of the page. */
const place = "{live-policy}";
const script = await bundled("src/main.ts", { format: "iife", target: "es2022" });
const style = await bundled("src/style.css", { target: "es2022" });
const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
const policy = [
  "default-src 'none'",
  `style-src ${hash(style)}`,
  "img-src data: blob:",
  "base-uri 'none'",
  "form-action 'none'",
  `script-src ${hash(script)}${place}`,
].join("; ");
const page = readFileSync(join(here, "src/page.html"), "utf8")
  .replace("{title}", () => "multihead")
  .replace("{policy}", () => policy)
  // The library puts the data of a page, and the elements of a live one, in these places.
  .replace("{elements}", () => '<script id="data" type="text/plain">{data}</script>\n{live}')
  .replace("{style}", () => style)
  .replace("{script}", () => script);
const worker = await bundled("src/live/worker.ts", { format: "iife", target: "es2022" });
const to = process.argv[2] ?? join(here, "../share/viewer");
mkdirSync(to, { recursive: true });
for (const [name, text] of [
  ["page.html", page],
  ["worker.js", `${worker}\n`],
]) {
  writeFileSync(join(to, name), text);
  console.log(`${relative(process.cwd(), join(to, name))}: ${Buffer.byteLength(text)} bytes`);
}
