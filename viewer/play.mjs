// node play.mjs [FOLDER [TOOL]]: makes the pages to play with, of src/play and of the questions and answers in ../docs/answers, by
// default in ../docs/answers/play. They are committed, so that they can be opened where they are. The page that holds a model is made
// only with TOOL, the program multihead, which writes the model and the library for it.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { bundled } from "./bundle.mjs";

const here = dirname(fileURLToPath(import.meta.url));

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

/** The elements of a page that holds the demo model, in 8 bits a number, as `multihead view --live` writes them. */
function liveElements(tool) {
  const folder = mkdtempSync(join(tmpdir(), "multihead-"));
  try {
    const path = join(folder, "live.html");
    const how = ["--live", "--live-weights", "int8", "--no-importance", "--output", path];
    execFileSync(tool, ["--quiet", "view", "demo", "the small dog sees a cat .", ...how]);
    const elements =
      readFileSync(path, "utf8").match(/<script (?:id="(?:live|worker)"|class="live")[^>]*>[\s\S]*?<\/script>/g) ?? [];
    // How far rounding takes the logits depends on the processor in its last digits.
    const rounded = (said) => `"difference":${Number(said.slice(13)).toPrecision(2)}`;
    return elements.map((element) => `${element.replace(/"difference":[^,]*/, rounded)}\n`).join("");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const training = {
  elements: `<script id="worker" type="text/plain">${worker}</script>\n`,
  policy: ["worker-src blob:"],
};
const [to = join(here, "../docs/answers/play"), tool] = process.argv.slice(2);
/** What pages have besides: a worker that trains, or the model and its worker. */
const besides = new Map([
  ["split-or-project", { elements: "", policy: [] }],
  ["diversity", training],
  ["two-matrices-or-one", training],
  ["one-product", { elements: "", policy: [] }],
  ...(tool ? [["unique-heads", { elements: liveElements(tool), policy: ["worker-src blob:"], wasm: true }]] : []),
]);
const policyOf = ({ policy, wasm }) =>
  [
    "default-src 'none'",
    `style-src ${hash(style)}`,
    "base-uri 'none'",
    "form-action 'none'",
    `script-src ${hash(script)}${wasm ? " 'wasm-unsafe-eval'" : ""}`,
    ...policy,
  ].join("; ");
const template = readFileSync(join(here, "src/page.html"), "utf8");
mkdirSync(to, { recursive: true });
for (const [name, own] of besides) {
  const text = textOf(name);
  const page = template
    .replace("{title}", () => text.question.replace(/&/g, "&amp;").replace(/</g, "&lt;"))
    .replace("{policy}", () => policyOf(own))
    .replace("{style}", () => style)
    .replace(
      "{elements}",
      () =>
        `<script id="play" type="application/json">${JSON.stringify(text).replaceAll("<", "\\u003c")}</script>\n${own.elements}`,
    )
    .replace("{script}", () => script);
  writeFileSync(join(to, `${name}.html`), page);
  console.log(`${relative(process.cwd(), join(to, `${name}.html`))}: ${Buffer.byteLength(page)} bytes`);
}
