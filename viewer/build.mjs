// node build.mjs [FILE]: makes FILE, by default ../share/viewer/page.html, the page without its data, of src/. The
// result depends on the sources and on package-lock.json alone; it is committed, so that the tool builds without node.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const common = {
  bundle: true,
  minify: true,
  charset: "utf8",
  legalComments: "none",
  write: false,
  absWorkingDir: here,
};

async function bundled(entry, options) {
  const result = await build({ ...common, ...options, entryPoints: [entry] });
  return result.outputFiles[0].text.trim().replaceAll("</script", "<\\/script");
}

const script = await bundled("src/main.ts", { format: "iife", target: "es2022" });
const style = await bundled("src/style.css", { target: "es2022" });
const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
const policy = [
  "default-src 'none'",
  `script-src ${hash(script)}`,
  `style-src ${hash(style)}`,
  "img-src data: blob:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");
const page = readFileSync(join(here, "src/page.html"), "utf8")
  .replace("{policy}", () => policy)
  .replace("{style}", () => style)
  .replace("{script}", () => script);
const to = process.argv[2] ?? join(here, "../share/viewer/page.html");
mkdirSync(dirname(to), { recursive: true });
writeFileSync(to, page);
console.log(`${relative(process.cwd(), to)}: ${Buffer.byteLength(page)} bytes`);
