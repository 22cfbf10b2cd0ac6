// node play.mjs [FOLDER]: makes the pages to play with, of src/play and of the questions and answers in ../docs/answers, by default in
// ../docs/answers/play. They are committed, so that they can be opened where they are.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { bundled } from "./bundle.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const names = ["split-or-project", "diversity", "two-matrices-or-one", "one-product"];
/** Those that train, in a worker. */
const trains = ["diversity", "two-matrices-or-one"];

/** The question and the first paragraph of an answer, without Markdown. */
function textOf(name) {
  const [title, ...blocks] = readFileSync(join(here, `../docs/answers/${name}.md`), "utf8").split("\n\n");
  const plain = (text) =>
    text
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .replace(/[*`]/g, "")
      .replace(/\s+/g, " ")
      .trim();
  return { name, question: plain(title.replace(/^#\s*/, "")), answer: [plain(blocks[0])] };
}

const script = await bundled("src/play/main.ts", { format: "iife", target: "es2022" });
const style = await bundled("src/play/play.css", { target: "es2022" });
const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
const worker = await bundled("src/play/worker.ts", { format: "iife", target: "es2022" });
const policyOf = (name) =>
  [
    "default-src 'none'",
    `style-src ${hash(style)}`,
    "base-uri 'none'",
    "form-action 'none'",
    `script-src ${hash(script)}`,
    ...(trains.includes(name) ? ["worker-src blob:"] : []),
  ].join("; ");
const workerOf = (name) => (trains.includes(name) ? `<script id="worker" type="text/plain">${worker}</script>\n` : "");
const template = readFileSync(join(here, "src/play/page.html"), "utf8");
const to = process.argv[2] ?? join(here, "../docs/answers/play");
mkdirSync(to, { recursive: true });
for (const name of names) {
  const text = textOf(name);
  const page = template
    .replace("{title}", () => text.question.replace(/&/g, "&amp;").replace(/</g, "&lt;"))
    .replace("{policy}", () => policyOf(name))
    .replace("{worker}", () => workerOf(name))
    .replace("{style}", () => style)
    .replace("{play}", () => JSON.stringify(text).replaceAll("<", "\\u003c"))
    .replace("{script}", () => script);
  writeFileSync(join(to, `${name}.html`), page);
  console.log(`${relative(process.cwd(), join(to, `${name}.html`))}: ${Buffer.byteLength(page)} bytes`);
}
