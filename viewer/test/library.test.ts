// The library as WebAssembly, in Node, beside the tool: MULTIHEAD_WASM is the folder of multihead.js and .wasm
// (scripts/wasm), and MULTIHEAD_TOOL the tool. Without them these tests are left out.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { inflateSync } from "node:zlib";
import { beforeAll, describe, expect, it } from "vitest";
import { type Changes, Library, type ModuleFactory, Refused } from "../src/live/library";
import { readPayload } from "../src/live/payload";

const wasm = process.env.MULTIHEAD_WASM ?? "";
const tool = process.env.MULTIHEAD_TOOL ?? "";
const models = process.env.MULTIHEAD_MODELS ?? "";
const demo = join(__dirname, "../../share/demo");

const texts = ["the small dog sees a cat .", "two men see the old house ."];
const changed: { flags: string[]; changes: Changes }[] = [
  { flags: [], changes: {} },
  { flags: ["--mute", "decoder.*.cross_attention.2"], changes: { mute: ["decoder.*.cross_attention.2"] } },
  {
    flags: ["--gate", "encoder.1.self_attention.0=0.25"],
    changes: { gate: [{ heads: "encoder.1.self_attention.0", by: 0.25 }] },
  },
  {
    flags: ["--replace", "encoder.0.self_attention.*=uniform"],
    changes: { replace: [{ heads: "encoder.0.self_attention.*", rule: "uniform" }] },
  },
];

function run(...words: string[]): string {
  return execFileSync(tool, ["--quiet", ...words], { encoding: "utf8" });
}
const lines = (text: string) => text.trimEnd().split("\n");

/** The small files and tensors of a model on disk, a folder or one file. */
function filesOf(path: string): Map<string, Uint8Array> {
  if (path.endsWith(".gguf")) return new Map([[basename(path), readFileSync(path)]]);
  const names = readdirSync(path, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  return new Map(
    names.map((one) => {
      const file = join(one.parentPath, one.name);
      return [file.slice(path.length + 1), readFileSync(file)];
    }),
  );
}

function file(text: string[]): string {
  const name = join(mkdtempSync(join(tmpdir(), "multihead-")), "text");
  writeFileSync(name, `${text.join("\n")}\n`);
  return name;
}

function expectNear(found: number[], wanted: number[], within: number): void {
  expect(found.length).toBe(wanted.length);
  for (const [i, one] of wanted.entries()) expect(Math.abs((found[i] ?? Number.NaN) - one)).toBeLessThan(within);
}

/** A folder of the files that a live page of a model holds. */
function folderInPage(...flags: string[]): string {
  const to = mkdtempSync(join(tmpdir(), "multihead-"));
  const page = join(to, "page.html");
  run("view", ...flags, "--live", "--no-importance", "-o", page);
  const html = readFileSync(page, "latin1");
  const between = (open: string) =>
    html
      .split(open)
      .slice(1)
      .map((rest) => rest.slice(0, rest.indexOf("</script>")));
  const [said = ""] = between('<script id="live" type="application/json">');
  const parts = between('<script class="live" type="text/plain">');
  for (const { name, bytes, parts: count } of readPayload(said).files) {
    const whole = inflateSync(Buffer.from(parts.splice(0, count).join(""), "base64"));
    expect(whole.length, name).toBe(bytes);
    if (name === "multihead.wasm") continue;
    mkdirSync(dirname(join(to, "model", name)), { recursive: true });
    writeFileSync(join(to, "model", name), whole);
  }
  return join(to, "model");
}

async function loaded(): Promise<Library> {
  const factory = createRequire(import.meta.url)(join(wasm, "multihead.js")) as ModuleFactory;
  return Library.load(factory, readFileSync(join(wasm, "multihead.wasm")));
}

describe.skipIf(wasm === "" || tool === "")("the library as WebAssembly", () => {
  let library: Library;
  let model = 0;
  beforeAll(async () => {
    library = await loaded();
    model = library.open("demo", filesOf(demo)).model;
  });

  it.each(changed)("translates and scores as the tool does with $flags", ({ flags, changes }) => {
    const source = file(texts);
    const wanted = lines(run("translate", "--model", demo, "-i", source, ...flags));
    const found = library.call("translate", model, { texts, changes }).translations;
    expect(found.map((best) => best[0]?.text)).toEqual(wanted);
    const per_token = lines(run("score", demo, "--source", source, "--target", file(wanted), "--per-token", ...flags));
    const scores = library.call("score", model, { texts, targets: wanted, changes }).log_probabilities;
    for (const [i, line] of per_token.entries()) {
      const [, ...tokens] = line.split(/\s+/).map(Number);
      expectNear(scores[i] ?? [], tokens, 1e-4);
    }
  });

  it("shows the weights of heads as the tool does", () => {
    const head = "decoder.1.cross_attention.2";
    const [text = ""] = texts;
    const report: unknown = JSON.parse(run("heads", demo, "--text", text, "--head", head, "--json"));
    const wanted = (report as { text: { weights: Record<string, number[][]> } }).text.weights[head] ?? [];
    const found = library.call("observe", model, { text, sites: ["decoder.1.cross_attention.weights.2"] });
    const rows = found.values["decoder.1.cross_attention.weights.2"] ?? [];
    expect(rows.length).toBe(wanted.length);
    for (const [i, row] of wanted.entries()) expectNear(rows[i] ?? [], row, 1e-4);
  });

  it("leaves each head out as the tool does", () => {
    const [text = ""] = texts;
    const wanted: unknown = JSON.parse(
      run("heads", "importance", demo, "-i", file([text]), "--by", "ablation", "--json"),
    );
    const heads = (wanted as { heads: { head: string; importance: { mean: number } | number }[] }).heads;
    const found = library.call("importance", model, { texts: [text] }).heads;
    expect(found.length).toBe(heads.length);
    const by = new Map(found.map((one) => [one.head, one.importance]));
    for (const one of heads) {
      const mean = typeof one.importance === "number" ? one.importance : one.importance.mean;
      expect(Math.abs((by.get(one.head) ?? Number.NaN) - mean)).toBeLessThan(1e-4);
    }
  });

  it("says in a line what is wrong", () => {
    expect(() => library.call("translate", 99, { texts })).toThrow(Refused);
    expect(() => library.call("embed", model, { texts })).toThrow("sentence");
    expect(() => library.open("nothing", new Map([["config.json", new Uint8Array([123])]]))).toThrow(
      "model.safetensors",
    );
  });

  it("multiplies blocks of every type as the tool does", () => {
    const path = join(__dirname, "../../tests/goldens/gguf_architectures/qwen3.gguf");
    const [line = ""] = lines(run("score", path, "-i", file(["the cat sat"]), "--per-token"));
    const [, ...tokens] = line.split(/\s+/).map(Number);
    const one = library.open("blocks", filesOf(path));
    const found = library.call("score", one.model, { texts: ["the cat sat"] });
    expectNear(found.log_probabilities[0] ?? [], tokens, 1e-4);
    library.call("close", one.model);
  });

  it.each(["float16", "int8"])("computes with weights that a page holds as %s what the tool does", (as) => {
    const folder = folderInPage("demo", texts[0] ?? "", "--live-weights", as);
    const source = file(texts);
    const wanted = lines(run("translate", "--model", folder, "-i", source));
    const one = library.open("rounded", filesOf(folder));
    const scored = (model: number) => library.call("score", model, { texts, targets: wanted }).log_probabilities;
    expect(library.call("translate", one.model, { texts }).translations.map((best) => best[0]?.text)).toEqual(wanted);
    const per_token = lines(run("score", folder, "--source", source, "--target", file(wanted), "--per-token"));
    for (const [i, line] of per_token.entries())
      expectNear(scored(one.model)[i] ?? [], line.split(/\s+/).map(Number).slice(1), 1e-4);
    expect(scored(one.model)).not.toEqual(scored(model));
    library.call("close", one.model);
  });

  it("fills masks in as the tool does, with all heads and without some", () => {
    const path = join(__dirname, "../../tests/goldens/fill/bert");
    const text = "the [MASK] sat [MASK] .";
    const one = library.open("masked", filesOf(path));
    const mute = ["encoder.0.self_attention.0"];
    for (const changes of [{}, { mute }]) {
      const flags = "mute" in changes ? ["--mute", mute.join()] : [];
      const said: unknown = JSON.parse(run("fill", path, "--text", text, "--words", "3", "--json", ...flags));
      const { masks } = said as { masks: { word: string; probability: number }[][] };
      const found = library.call("fill", one.model, { texts: [text], options: { words: 3 }, changes }).masks[0] ?? [];
      expect(found.map((mask) => mask.map(({ word }) => word))).toEqual(
        masks.map((mask) => mask.map(({ word }) => word)),
      );
      for (const [i, mask] of masks.entries())
        expectNear(
          (found[i] ?? []).map(({ probability }) => probability),
          mask.map(({ probability }) => probability),
          1e-4,
        );
    }
    library.call("close", one.model);
  });

  it("leaves products of integers to the tool", () => {
    const files = filesOf(demo);
    for (const precision of ["near", "fast", "fast:int8-plain"])
      expect(() => library.open("demo", files, { precision })).toThrow(/float32 alone, not .*; take same/);
    expect(() => library.open("demo", files, { precision: "exact" })).toThrow("expected same|near|fast, got exact");
    library.call("close", library.open("demo", files, { precision: "same" }).model);
  });

  it("survives 2,000 hostile texts", () => {
    let state = 1;
    const next = (below: number) => {
      state = (state * 48271) % 2147483647;
      return state % below;
    };
    const odd = ["\u0000", "\ud800", "\u202e", "😀", "ﬁ", "<unk>", "</s>", "  ", "\t", "a".repeat(500), "0", "é", "."];
    for (let n = 0; n < 2000; ++n) {
      const text = Array.from({ length: next(9) }, () => odd[next(odd.length)] ?? "").join("");
      try {
        const found = library.call("tokens", model, { text });
        expect(found.ids.length).toBe(found.labels.length);
        if (n % 50 === 0) library.call("translate", model, { texts: [text] });
      } catch (error) {
        expect(error).toBeInstanceOf(Refused);
      }
    }
  });

  it("gives memory back", () => {
    const files = filesOf(demo);
    const bytes = () => library.bytes();
    library.call("translate", model, { texts });
    for (let n = 0; n < 3; ++n) library.call("close", library.open("again", files).model);
    const before = bytes();
    for (let n = 0; n < 20; ++n) library.call("close", library.open("again", files).model);
    for (let n = 0; n < 1000; ++n) library.call("translate", model, { texts: [texts[n % 2]] });
    expect(bytes()).toBe(before);
  });

  it.skipIf(models === "").each(["file", "int8"])("embeds as the tool does, with weights as %s", (as) => {
    const minilm = join(models, "minilm");
    const path = as === "file" ? minilm : folderInPage(minilm, texts[0] ?? "", "--live-weights", as);
    const wanted = lines(run("embed", path, "-i", file(texts), "--format", "jsonl")).map(
      (line) => (JSON.parse(line) as { vector: number[] }).vector,
    );
    const one = library.open("minilm", filesOf(path));
    const found = library.call("embed", one.model, { texts });
    for (const [i, vector] of wanted.entries()) expectNear(found.vectors[i] ?? [], vector, 1e-4);
    library.call("close", one.model);
  });

  it.skipIf(models === "")("continues a text as the tool does", () => {
    const path = join(models, "smollm2.gguf");
    const prompt = "The capital of France is";
    const wanted = run("generate", path, "--prompt", prompt, "--max-new-tokens", "8");
    const one = library.open("smollm2", filesOf(path));
    const found = library.call("generate", one.model, { texts: [prompt], options: { max_new_tokens: 8 } });
    expect(wanted).toContain((found.texts[0] ?? "").trim());
    library.call("close", one.model);
  });
});
