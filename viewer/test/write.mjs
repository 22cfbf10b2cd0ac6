// node test/write.mjs DIR: writes the made-up pages as DIR/NAME.html.
// node test/write.mjs --into PAGE.html TO.html: the data of PAGE.html in the newest template.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
/** The template with these data, which is no live page. */
const filled = (data) =>
  readFileSync(join(here, "../../share/viewer/page.html"), "utf8")
    .replace("{live-policy}", "")
    .replace("{data}", () => data)
    .replace("{live}", "");
if (process.argv[2] === "--into") {
  const old = readFileSync(process.argv[3], "utf8");
  const found = /<script id="data"[^>]*>([^<]*)<\/script>/.exec(old);
  if (!found) throw new Error(`${process.argv[3]} has no data`);
  writeFileSync(process.argv[4], filled(found[1]));
} else {
  const to = process.argv[2] ?? "pages";
  mkdirSync(to, { recursive: true });
  const bundle = await build({
    entryPoints: [join(here, "pages.ts")],
    bundle: true,
    format: "esm",
    platform: "node",
    write: false,
  });
  const module = await import(
    `data:text/javascript;base64,${Buffer.from(bundle.outputFiles[0].text).toString("base64")}`
  );
  for (const [name, make] of Object.entries(module.pages)) {
    writeFileSync(join(to, `${name}.html`), filled(make().data));
  }
}
