// node web/measure.mjs BUILD/wasm [MODEL ...]: the bytes of the module, as they are and compressed, and the milliseconds of calls
// (web/README.md). MODEL: a folder of a sentence model, which embeds 32 tokens, or a .gguf file, which writes 32 tokens after a prompt.
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";

const folder = resolve(process.argv[2] ?? "build/wasm");
const wasm = readFileSync(join(folder, "multihead.wasm"));
const js = readFileSync(join(folder, "multihead.js"));
const module = await createRequire(import.meta.url)(join(folder, "multihead.js"))({ wasmBinary: wasm });

function call(name, given, model) {
  const request = new TextEncoder().encode(JSON.stringify({ call: name, model, given }));
  const at = module._malloc(request.length);
  module.HEAPU8.set(request, at);
  const answer = module._mh_call(at, request.length);
  const found = JSON.parse(new TextDecoder().decode(module.HEAPU8.subarray(answer, answer + module._mh_answer_bytes())));
  module._free(at);
  if (found.error) throw new Error(found.error);
  return found;
}

/** Opens a folder or a file on disk. */
function open(path) {
  const to = `/${basename(path)}`;
  if (path.endsWith(".gguf")) {
    module.FS.writeFile(to, readFileSync(path));
  } else {
    for (const one of readdirSync(path, { recursive: true, withFileTypes: true })) {
      if (!one.isFile()) continue;
      const folder = one.parentPath.replace(path, to);
      module.FS.mkdirTree(folder);
      module.FS.writeFile(`${folder}/${one.name}`, readFileSync(join(one.parentPath, one.name)));
    }
  }
  return call("open", { path: to });
}
const { model } = open(new URL("../share/demo", import.meta.url).pathname);

/** The fastest and the median of so many calls, in milliseconds. */
function time(calls, name, given, of = model) {
  const each = [];
  for (let n = 0; n < calls; ++n) {
    const begun = performance.now();
    call(name, given, of);
    each.push(performance.now() - begun);
  }
  each.sort((a, b) => a - b);
  return `${name.padEnd(11)} ${each[0].toFixed(1)} ms, median ${each[Math.floor(calls / 2)].toFixed(1)}`;
}

for (const [name, bytes] of [["multihead.wasm", wasm], ["multihead.js", js]])
  console.log(`${name.padEnd(14)} ${bytes.length} bytes, gzip -9: ${gzipSync(bytes, { level: 9 }).length}`);
const text = "two men see the old house .";
time(50, "translate", { texts: [text] }); // the engine compiles what is called often a second time
console.log(time(200, "translate", { texts: [text] }));
console.log(time(50, "observe", { text }));
console.log(time(10, "importance", { texts: [text] }));
console.log(time(3, "page", { texts: [text] }));

for (const path of process.argv.slice(3).map((path) => resolve(path))) {
  const opened = open(path);
  const words = "the house is old and the dog sees a man who has read two books about it while he was in the city by the sea .";
  const { ids } = call("tokens", { text: words }, opened.model);
  if (opened.kind === "causal") {
    const options = { max_new_tokens: 32 };
    call("generate", { texts: [words], options: { max_new_tokens: 1 } }, opened.model);
    const begun = performance.now();
    call("generate", { texts: [words], options }, opened.model);
    const seconds = (performance.now() - begun) / 1000;
    console.log(`${basename(path)}: generate ${(32 / seconds).toFixed(1)} tokens/s after a prompt of ${ids.length}`);
  } else {
    console.log(`${basename(path)}: ${ids.length} tokens, ${time(30, "embed", { texts: [words] }, opened.model)}`);
  }
}
