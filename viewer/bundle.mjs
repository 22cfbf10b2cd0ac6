// Bundles a source and what it imports, minified: what the pages are made of.
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const common = {
  bundle: true,
  minify: true,
  charset: "utf8",
  legalComments: "none",
  write: false,
  absWorkingDir: dirname(fileURLToPath(import.meta.url)),
};

/** As it may stand in an element of a page. */
export async function bundled(entry, options) {
  const result = await build({ ...common, ...options, entryPoints: [entry] });
  return result.outputFiles[0].text.trim().replaceAll("</script", "<\\/script");
}
