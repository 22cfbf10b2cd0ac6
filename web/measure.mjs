// node web/measure.mjs BUILD/wasm: the bytes of the module, as they are and compressed, and the milliseconds of calls (web/README.md).
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
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

const demo = new URL("../share/demo/", import.meta.url);
module.FS.mkdirTree("/demo");
for (const file of readdirSync(demo)) module.FS.writeFile(`/demo/${file}`, readFileSync(new URL(file, demo)));
const { model } = call("open", { path: "/demo" });

/** The fastest and the median of so many calls, in milliseconds. */
function time(calls, name, given) {
  const each = [];
  for (let n = 0; n < calls; ++n) {
    const begun = performance.now();
    call(name, given, model);
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
